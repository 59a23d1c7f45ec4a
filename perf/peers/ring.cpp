// Ring: connecting, splitting by shares, and the step that sends and receives on all rails at once.
#include "perf/peers/ring.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/mptcp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>

namespace peers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(20);
constexpr auto kPause = std::chrono::milliseconds(10);
constexpr std::size_t kSmallestSplitBytes = 64 << 10;  // smaller pieces go over the fastest rail
constexpr std::size_t kGrain = 16;                     // elements: one cache line of floats

std::runtime_error system_error(const std::string& what) {
  return std::runtime_error(what + ": " + std::strerror(errno));
}

sockaddr_in socket_address(const std::string& address, int port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &result.sin_addr) != 1) {
    throw std::runtime_error("not an IPv4 address: " + address);
  }
  return result;
}

int make_socket(bool is_multipath) {
  const int made =
      socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, is_multipath ? IPPROTO_MPTCP : IPPROTO_TCP);
  if (made < 0) throw system_error(is_multipath ? "Multipath TCP socket" : "TCP socket");
  return made;
}

int bind_to(int made, const sockaddr_in& address) {
  return bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

int listen_at(const std::string& address, int port, bool is_multipath) {
  const int listener = make_socket(is_multipath);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind_to(listener, socket_address(address, port)) != 0 || listen(listener, 64) != 0) {
    throw system_error("listen at " + address + ":" + std::to_string(port));
  }
  return listener;
}

int connect_to(const std::string& own, const std::string& peer, int port, bool is_multipath) {
  const auto deadline = Clock::now() + kPatience;
  while (true) {
    const int made = make_socket(is_multipath);
    const sockaddr_in target = socket_address(peer, port);
    if (bind_to(made, socket_address(own, 0)) == 0 &&
        connect(made, reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0) {
      return made;
    }
    const auto error = system_error("connect " + own + " to " + peer + ":" + std::to_string(port));
    close(made);
    if (Clock::now() > deadline) throw error;
    std::this_thread::sleep_for(kPause);
  }
}

int accept_from(int listener, const std::string& peer) {
  pollfd waiting{listener, POLLIN, 0};
  const auto limit_ms = std::chrono::milliseconds(kPatience).count();
  if (poll(&waiting, 1, static_cast<int>(limit_ms)) <= 0) {
    throw std::runtime_error("nobody connected; expected " + peer);
  }
  const int accepted = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted < 0) throw system_error("accept " + peer);
  return accepted;
}

void settle(int made) {
  const int on = 1;
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(made, F_SETFL, fcntl(made, F_GETFL) | O_NONBLOCK);
}

// What is left of one direction of one rail in a step.
struct Flow {
  int socket = -1;
  char* at = nullptr;
  std::size_t left = 0;
};

// Each returns false if the kernel took or had nothing.
bool send_some(Flow& flow) {
  const ssize_t sent = send(flow.socket, flow.at, flow.left, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) throw system_error("send");
  if (sent <= 0) return false;
  flow.at += sent;
  flow.left -= static_cast<std::size_t>(sent);
  return true;
}

bool receive_some(Flow& flow) {
  const ssize_t got = recv(flow.socket, flow.at, flow.left, 0);
  if (got == 0) throw std::runtime_error("a neighbour closed the connection");
  if (got < 0 && errno != EAGAIN && errno != EINTR) throw system_error("receive");
  if (got <= 0) return false;
  flow.at += got;
  flow.left -= static_cast<std::size_t>(got);
  return true;
}

}  // namespace

Ring::Ring(const RingOptions& options) : options_(options), rails_(options.shares.size()) {
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    rails_[rail].share = options.shares[rail];
    const auto& own = options.addresses[static_cast<std::size_t>(options.rank)];
    // Further subflows of Multipath TCP arrive at the other rails' addresses.
    listeners_.push_back(listen_at(options.is_multipath ? "0.0.0.0" : own[rail],
                                   options.port + static_cast<int>(rail), options.is_multipath));
  }
  if (options.rank_count == 1) return;
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) connect_rail(rail);
}

Ring::~Ring() {
  for (const Rail& rail : rails_) {
    if (rail.to_next >= 0) close(rail.to_next);
    if (rail.from_previous >= 0) close(rail.from_previous);
  }
  for (const int listener : listeners_) close(listener);
}

void Ring::connect_rail(std::size_t rail) {
  const int ranks = options_.rank_count;
  const auto at = [&](int rank) -> const std::string& {
    return options_.addresses[static_cast<std::size_t>(rank)][rail];
  };
  const int next = (options_.rank + 1) % ranks;
  const int previous = (options_.rank + ranks - 1) % ranks;
  rails_[rail].to_next = connect_to(at(options_.rank), at(next),
                                    options_.port + static_cast<int>(rail), options_.is_multipath);
  rails_[rail].from_previous = accept_from(listeners_[rail], at(previous));
  settle(rails_[rail].to_next);
  settle(rails_[rail].from_previous);
  if (options_.extra_subflows > 0) wait_for_subflows(rails_[rail].to_next);
}

void Ring::wait_for_subflows(int made) const {
  // The peer names its other addresses only after the first data.
  const char hello = 'h';
  if (send(made, &hello, 1, MSG_NOSIGNAL) != 1) throw system_error("send");
  char heard = 0;
  pollfd waiting{rails_[0].from_previous, POLLIN, 0};
  const auto limit_ms = std::chrono::milliseconds(kPatience).count();
  if (poll(&waiting, 1, static_cast<int>(limit_ms)) <= 0 ||
      recv(rails_[0].from_previous, &heard, 1, 0) != 1) {
    throw std::runtime_error("the previous rank sent no greeting");
  }
  const auto deadline = Clock::now() + kPatience;
  mptcp_info info{};
  do {
    socklen_t size = sizeof info;
    if (getsockopt(made, SOL_MPTCP, MPTCP_INFO, &info, &size) != 0) {
      throw system_error("MPTCP_INFO (is it plain TCP?)");
    }
    if (info.mptcpi_subflows >= options_.extra_subflows) return;
    std::this_thread::sleep_for(kPause);
  } while (Clock::now() < deadline);
  throw std::runtime_error("Multipath TCP made " + std::to_string(info.mptcpi_subflows) + " of " +
                           std::to_string(options_.extra_subflows) + " further subflows");
}

Ring::Range Ring::chunk(int index, std::size_t count) const {
  const auto ranks = static_cast<std::size_t>(options_.rank_count);
  const std::size_t length = (count / ranks + kGrain - 1) / kGrain * kGrain;
  const std::size_t which = static_cast<std::size_t>(
      (index % options_.rank_count + options_.rank_count) % options_.rank_count);
  const std::size_t begin = std::min(count, which * length);
  const std::size_t end = which + 1 == ranks ? count : std::min(count, begin + length);
  return {begin, end};
}

std::vector<Ring::Range> Ring::split(Range whole) const {
  std::vector<Range> parts(rails_.size(), Range{whole.begin, whole.begin});
  const std::size_t length = whole.end - whole.begin;
  if (rails_.size() == 1 || length * sizeof(float) < kSmallestSplitBytes) {
    parts[0] = whole;
    return parts;
  }
  const double sum =
      std::accumulate(rails_.begin(), rails_.end(), 0.0,
                      [](double before, const Rail& rail) { return before + rail.share; });
  double shares = 0;
  std::size_t at = whole.begin;
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    shares += rails_[rail].share;
    const auto until = static_cast<std::size_t>(static_cast<double>(length) * shares / sum);
    const std::size_t end =
        rail + 1 == rails_.size() ? whole.end : whole.begin + until / kGrain * kGrain;
    parts[rail] = {at, end};
    at = end;
  }
  return parts;
}

// Sends and receives a range each, over all rails at once. With sum_to, what arrives is added to
// added_to, element by element, as soon as it is there.
void Ring::step(const float* send_from, Range sent, float* receive_to, Range received,
                const float* added_to, float* sum_to) {
  const std::vector<Range> out = split(sent);
  const std::vector<Range> in = split(received);
  const std::size_t count = rails_.size();
  std::vector<Flow> flows(2 * count);  // sends, then receives
  std::vector<std::size_t> summed(count);
  for (std::size_t rail = 0; rail < count; ++rail) {
    const auto bytes = [](Range range) { return (range.end - range.begin) * sizeof(float); };
    flows[rail] = {rails_[rail].to_next,
                   reinterpret_cast<char*>(const_cast<float*>(send_from + out[rail].begin)),
                   bytes(out[rail])};
    flows[count + rail] = {rails_[rail].from_previous,
                           reinterpret_cast<char*>(receive_to + in[rail].begin), bytes(in[rail])};
    summed[rail] = in[rail].begin;
  }
  std::vector<pollfd> waiting(flows.size());
  while (true) {
    bool is_moving = false;
    bool is_done = true;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      Flow& flow = flows[i];
      const bool is_receiving = i >= count;
      if (flow.left > 0) is_moving |= is_receiving ? receive_some(flow) : send_some(flow);
      waiting[i] = {flow.left > 0 ? flow.socket : -1,
                    static_cast<short>(is_receiving ? POLLIN : POLLOUT), 0};
      is_done &= flow.left == 0;
      if (!is_receiving || sum_to == nullptr) continue;
      std::size_t& from = summed[i - count];
      const std::size_t until = in[i - count].end - (flow.left + sizeof(float) - 1) / sizeof(float);
      for (; from < until; ++from) sum_to[from] = added_to[from] + receive_to[from];
    }
    if (is_done) return;
    if (is_moving || options_.is_spinning) continue;
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) throw system_error("poll");
  }
}

void Ring::all_reduce(const float* input, float* output, std::size_t count) {
  const int rank = options_.rank;
  const int ranks = options_.rank_count;
  if (ranks == 1) {
    std::copy_n(input, count, output);
    return;
  }
  if (scratch_.size() < count) scratch_.resize(count);
  for (int s = 0; s < ranks - 1; ++s) {
    step(s == 0 ? input : output, chunk(rank - s, count), scratch_.data(),
         chunk(rank - s - 1, count), input, output);
  }
  for (int s = 0; s < ranks - 1; ++s) {
    step(output, chunk(rank + 1 - s, count), output, chunk(rank - s, count), nullptr, nullptr);
  }
}

}  // namespace peers
