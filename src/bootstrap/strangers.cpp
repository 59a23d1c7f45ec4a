#include "src/bootstrap/strangers.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

namespace polyrail::bootstrap {
namespace {

// Two round trips to anywhere on earth fit many times; a caller that needs longer may call again.
constexpr std::chrono::seconds kHandshakePatience{5};
constexpr std::size_t kLoggedAtOnce = 3;      // of each reason, so that none hides another;
constexpr std::chrono::seconds kLogPause{1};  // then one line of any reason in that time

}  // namespace

void Strangers::add(FileDescriptor descriptor, const Address& from) {
  if (callers_.size() >= most_) evict_one();
  Caller caller;
  caller.descriptor = std::move(descriptor);
  caller.from = from;
  caller.until = Clock::now() + kHandshakePatience;
  callers_.push_back(std::move(caller));
}

void Strangers::evict_one() {
  if (callers_.empty()) return;
  // The oldest of those that have said nothing proper yet, or else simply the oldest.
  auto least = std::find_if(callers_.begin(), callers_.end(),
                            [](const Caller& caller) { return caller.challenge.empty(); });
  if (least == callers_.end()) least = callers_.begin();
  turn_away(*least, "there were too many callers");
  callers_.erase(least);
}

void Strangers::append_polled(std::vector<pollfd>& polled) const {
  for (const Caller& caller : callers_) polled.push_back({caller.descriptor.get(), POLLIN, 0});
}

std::vector<Proven> Strangers::step(const pollfd* polled, std::uint32_t remaining_ms) {
  std::vector<Proven> proven;
  std::vector<Caller> staying;
  for (Caller& caller : callers_) {
    Next next = Next::kWait;
    std::optional<Claim> claim;
    if (polled++->revents != 0) next = read_more(caller, remaining_ms, claim);
    if (next == Next::kWait) staying.push_back(std::move(caller));
    if (next == Next::kProven) proven.push_back({std::move(caller.descriptor), *claim});
  }
  callers_ = std::move(staying);
  return proven;
}

Clock::time_point Strangers::drop_late(Clock::time_point now) {
  auto next = Clock::time_point::max();
  std::erase_if(callers_, [&](const Caller& caller) {
    if (caller.until <= now) {
      turn_away(caller, caller.hello.empty() ? "it said nothing" : "it did not finish in time");
      return true;
    }
    next = std::min(next, caller.until);
    return false;
  });
  return next;
}

std::string Strangers::summary() const {
  if (turned_away_count_ == 0) return "";
  const std::string who = turned_away_count_ == 1 ? "1 stranger was turned away, "
                                                  : std::to_string(turned_away_count_) +
                                                        " strangers were turned away, the last ";
  return who + last_;
}

// Never takes more bytes than the handshake has, so that what follows it stays in the socket.
Strangers::Next Strangers::read_more(Caller& caller, std::uint32_t remaining_ms,
                                     std::optional<Claim>& claim) {
  std::array<char, std::max(kHelloBytes, kReplyBytes)> bytes;
  while (true) {
    const bool is_hello = caller.challenge.empty();
    std::string& message = is_hello ? caller.hello : caller.reply;
    const std::size_t size = is_hello ? kHelloBytes : kReplyBytes;
    const Moved moved = receive_some(caller.descriptor, bytes.data(), size - message.size());
    if (moved.error != 0 || moved.has_ended) {
      // Ranks call at all our addresses and drop all calls but one, before or after the hello.
      if (message.empty()) return Next::kGone;
      return turn_away(caller, moved.has_ended ? "it closed its connection in the middle"
                                               : system_text(moved.error));
    }
    if (moved.bytes == 0) return Next::kWait;
    message.append(bytes.data(), moved.bytes);
    if (is_hello && !may_be_hello(message)) {
      return turn_away(caller, "it does not speak Polyrail's start-up protocol");
    }
    if (message.size() < size) continue;
    if (!is_hello) {
      claim = check_reply(setup_.key, caller.hello, caller.challenge, caller.reply);
      return claim.has_value() ? Next::kProven
                               : turn_away(caller, "it does not know the key of this job");
    }
    const Result<Nonce> nonce = random_nonce();
    if (!nonce.is_ok()) return turn_away(caller, nonce.status().message());
    Claim self = setup_.self;
    self.remaining_ms = remaining_ms;
    caller.challenge = make_challenge(setup_.key, caller.hello, nonce.value(), self);
    // The first bytes on a fresh connection always find room.
    if (send_some(caller.descriptor, caller.challenge).bytes != caller.challenge.size()) {
      return turn_away(caller, "it takes no answer");
    }
  }
}

Strangers::Next Strangers::turn_away(const Caller& caller, const std::string& why) {
  ++turned_away_count_;
  last_ = to_text(caller.from) + ": " + why;
  const Clock::time_point now = Clock::now();
  if (++logged_counts_[why] <= kLoggedAtOnce || now >= next_log_) {
    const std::string more =
        unlogged_count_ == 0 ? "" : " (and " + std::to_string(unlogged_count_) + " more)";
    setup_.logger->warn("bootstrap: stranger turned away: {}{}", last_, more);
    unlogged_count_ = 0;
    next_log_ = now + kLogPause;
  } else {
    ++unlogged_count_;
  }
  return Next::kGone;
}

}  // namespace polyrail::bootstrap
