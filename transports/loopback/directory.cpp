#include "transports/loopback/directory.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <charconv>
#include <random>

namespace polyrail::loopback {
namespace {

constexpr std::string_view kPrefix = "loopback:";
constexpr std::size_t kTokenDigits = 32;

std::string random_token() {
  std::array<std::uint8_t, kTokenDigits / 2> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::random_device device;
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(device());
  }
  std::string text;
  for (const auto byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// Digits of the number at the start of `text`, which it must fill.
bool parse_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string to_text(const PortAddress& address) {
  return std::string(kPrefix) + address.process + ":" + std::to_string(address.id);
}

Result<PortAddress> parse_port_address(std::string_view text) {
  const Status malformed(StatusCode::kInvalidArgument,
                         "connect over loopback: the peer's address is malformed");
  if (!text.starts_with(kPrefix)) return malformed;
  text.remove_prefix(kPrefix.size());
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return malformed;
  const auto process = text.substr(0, colon);
  PortAddress address{std::string(process), 0};
  std::uint64_t number = 0;
  if (process.size() < kTokenDigits + 2 || process[kTokenDigits] != '-' ||
      process.find_first_not_of("0123456789abcdef") != kTokenDigits ||
      !parse_number(process.substr(kTokenDigits + 1), number) ||
      !parse_number(text.substr(colon + 1), address.id)) {
    return malformed;
  }
  return address;
}

Directory& Directory::instance() {
  static Directory directory;
  return directory;
}

Directory::Directory() : token_(random_token()) {}

// The number is asked for each time: after fork() the child is another process.
std::string Directory::process() const {
  return token_ + "-" + std::to_string(::getpid());
}

PortAddress Directory::open(const TransportContext& context, std::shared_ptr<Waker> waker) {
  const std::lock_guard lock(mutex_);
  const auto id = ++last_id_;
  ports_.emplace(id, Port{context, std::move(waker), {}});
  return {process(), id};
}

void Directory::close(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = ports_.find(id);
  if (found == ports_.end()) return;
  for (auto& [from, wire] : found->second.offers) wire->close(1);
  ports_.erase(found);
}

Result<WireEnd> Directory::connect(std::uint64_t own_id, int peer, const PortAddress& address) {
  if (address.process != process()) {
    return Status(StatusCode::kRemoteError, "the peer lives in another process");
  }
  const std::lock_guard lock(mutex_);
  const auto found = ports_.find(address.id);
  if (found == ports_.end()) return Status(StatusCode::kRemoteError, "the peer's rail is closed");
  auto& own = ports_.at(own_id);
  auto& other = found->second;
  if (other.context.key != own.context.key) {
    return Status(StatusCode::kRemoteError, "the peer has another key");
  }
  if (other.context.communicator_id != own.context.communicator_id ||
      other.context.rank_count != own.context.rank_count) {
    return Status(StatusCode::kRemoteError, "the peer belongs to another communicator");
  }
  if (other.context.rank != peer) {
    return Status(StatusCode::kRemoteError,
                  "the address is that of rank " + std::to_string(other.context.rank));
  }
  if (const auto offer = own.offers.find(address.id); offer != own.offers.end()) {
    WireEnd end{std::move(offer->second), 1};
    own.offers.erase(offer);
    if (end.wire->is_closed(0)) return Status(StatusCode::kRemoteError, "the peer has given up");
    end.wire->join();
    end.wire->wake(0);
    return end;
  }
  auto wire = std::make_shared<Wire>(own.waker, other.waker);
  if (!other.offers.emplace(own_id, wire).second) {
    return Status(StatusCode::kInternalError, "connected twice");
  }
  return WireEnd{std::move(wire), 0};
}

}  // namespace polyrail::loopback
