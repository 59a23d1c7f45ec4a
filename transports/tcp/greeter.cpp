#include "transports/tcp/greeter.hpp"

#include <sodium.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/assert.hpp"

namespace polyrail::tcp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStrangerTimeout{5000};
constexpr milliseconds kFirstRetry{10};
constexpr milliseconds kLongestRetry{500};
constexpr milliseconds kAcceptPause{50};
constexpr milliseconds kStrangerLogInterval{1000};

Handshake::Nonce fresh_nonce() {
  Handshake::Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

}  // namespace

Greeter::Greeter(int epoll_fd, SocketPlace place, Listener listener, HandshakeSelf self,
                 int connect_timeout_ms, Logger logger)
    : epoll_fd_(epoll_fd),
      place_(std::move(place)),
      listener_(std::move(listener)),
      self_(std::move(self)),
      connect_timeout_(milliseconds(connect_timeout_ms)),
      logger_(std::move(logger)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      meetings_(self_.rank_count) {}

Status Greeter::start() {
  if (!timer_.is_open()) return system_error("make a timer", errno);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = &timer_tag_;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, timer_.get(), &event) != 0) {
    return system_error("watch a timer", errno);
  }
  event.data.ptr = &listener_tag_;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, listener_.fd.get(), &event) != 0) {
    return system_error("watch the listener", errno);
  }
  return ok();
}

void Greeter::meet(int peer, const SocketAddress& remote, std::uint16_t socket_count) {
  Meeting& meeting = meetings_[static_cast<std::size_t>(peer)];
  PR_ASSERT(!meeting.is_open);
  meeting.is_open = true;
  meeting.remote = remote;
  meeting.deadline = Clock::now() + connect_timeout_;
  meeting.retry_delay = kFirstRetry;
  if (dials(peer)) {
    meeting.sockets.resize(socket_count);
    for (std::uint16_t i = 0; i < socket_count && meeting.is_open; ++i) dial_peer(peer, i);
  } else {
    // Its sockets may have come before.
    for (std::size_t i = 0; i < greetings_.size(); ++i) {
      Greeting& greeting = *greetings_[i];
      if (greeting.state() == Greeting::State::kProven &&
          greeting.handshake().peer() == static_cast<std::uint32_t>(peer)) {
        settle(greeting);
      }
    }
  }
  set_timer();
}

void Greeter::dial_peer(int peer, std::uint16_t socket_index) {
  const Meeting& meeting = meetings_[static_cast<std::size_t>(peer)];
  Result<Descriptor> fd = dial(place_, meeting.remote);
  if (!fd.is_ok()) {
    fail_meeting(peer, fd.status());
    return;
  }
  greetings_.push_back(std::make_unique<Greeting>(
      std::move(fd.value()),
      Handshake::for_dialer(self_, static_cast<std::uint32_t>(peer), socket_index,
                            static_cast<std::uint16_t>(meeting.sockets.size()), fresh_nonce()),
      true, meeting.remote, meeting.deadline));
  watch(*greetings_.back());
}

void Greeter::on_event(Watched& watched) {
  switch (watched.kind) {
    case Watched::Kind::kListener:
      accept_all();
      break;
    case Watched::Kind::kTimer:
      on_timer();
      break;
    case Watched::Kind::kGreeting: {
      auto& greeting = static_cast<Greeting&>(watched);
      greeting.progress();
      settle(greeting);
      break;
    }
    case Watched::Kind::kWriters:
    case Watched::Kind::kSocket:
      PR_ASSERT(false);
  }
}

std::vector<Met> Greeter::take_met() {
  sweep();
  set_timer();
  return std::exchange(met_, {});
}

void Greeter::accept_all() {
  while (true) {
    sockaddr_storage storage{};
    socklen_t bytes = sizeof(storage);
    Descriptor fd(accept4(listener_.fd.get(), reinterpret_cast<sockaddr*>(&storage), &bytes,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.is_open()) {
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
      if (errno != EAGAIN) {
        logger_->warn("rail {}: accept at {}: {}; trying again", place_.device,
                      listener_.address.text(), std::strerror(errno));
        retry_accept_ = Clock::now() + kAcceptPause;
      }
      return;
    }
    make_room_for_stranger();
    set_stream_options(fd.get());
    const SocketAddress remote(reinterpret_cast<const sockaddr*>(&storage), bytes);
    const auto deadline =
        Clock::now() + std::min<Clock::duration>(kStrangerTimeout, connect_timeout_);
    greetings_.push_back(std::make_unique<Greeting>(
        std::move(fd), Handshake::for_acceptor(self_, fresh_nonce()), false, remote, deadline));
    Greeting& greeting = *greetings_.back();
    watch(greeting);
    greeting.progress();  // the hello may be there already
    settle(greeting);
  }
}

void Greeter::make_room_for_stranger() {
  const auto is_stranger = [](const auto& greeting) { return greeting->is_stranger(); };
  if (std::count_if(greetings_.begin(), greetings_.end(), is_stranger) <
      static_cast<std::ptrdiff_t>(kMaxStrangers)) {
    return;
  }
  // An honest peer proves itself within a round trip, so the oldest is the least likely to be one;
  // if it is one after all, it dials again.
  const auto oldest = std::find_if(greetings_.begin(), greetings_.end(), is_stranger);
  log_stranger((*oldest)->remote(), "too many sockets that say nothing");
  // Events already fetched may point to it: it is only closed here and freed by sweep().
  (*oldest)->drop();
}

void Greeter::on_timer() {
  std::uint64_t expirations;
  (void)!read(timer_.get(), &expirations, sizeof(expirations));
  timer_at_ = {};
  const auto now = Clock::now();
  if (retry_accept_ && *retry_accept_ <= now) {
    retry_accept_.reset();
    accept_all();
  }
  for (std::size_t i = 0; i < retries_.size();) {
    if (retries_[i].when > now) {
      ++i;
      continue;
    }
    const Retry retry = retries_[i];
    retries_.erase(retries_.begin() + static_cast<std::ptrdiff_t>(i));
    if (meetings_[static_cast<std::size_t>(retry.peer)].is_open) {
      dial_peer(retry.peer, retry.socket_index);
    }
  }
  for (auto& greeting : greetings_) {
    if (greeting->fd() < 0 || greeting->deadline > now || greeting->is_dialer()) continue;
    log_stranger(greeting->remote(), "it did not prove itself in time");
    greeting->drop();
  }
  for (std::size_t peer = 0; peer < meetings_.size(); ++peer) {
    Meeting& meeting = meetings_[peer];
    if (!meeting.is_open || meeting.deadline > now) continue;
    const auto waited_ms = std::chrono::duration_cast<milliseconds>(connect_timeout_).count();
    std::string text = dials(static_cast<int>(peer))
                           ? "no answer within " + std::to_string(waited_ms) + " ms from " +
                                 path_text(meeting.remote)
                           : "it did not dial " + listener_.address.text() + " (" + place_.device +
                                 ") within " + std::to_string(waited_ms) + " ms";
    if (!meeting.last_failure.is_ok()) text += "; last: " + meeting.last_failure.message();
    fail_meeting(static_cast<int>(peer), {StatusCode::kTimeout, std::move(text)});
  }
}

void Greeter::settle(Greeting& greeting) {
  if (greeting.fd() < 0) return;
  if (greeting.state() == Greeting::State::kProven) settle_proven(greeting);
  switch (greeting.state()) {
    case Greeting::State::kUnderWay:
    case Greeting::State::kProven:
      return;
    case Greeting::State::kDone:
      settle_done(greeting);
      return;
    case Greeting::State::kBroken:
    case Greeting::State::kRefused:
      settle_failed(greeting);
      greeting.drop();
      return;
  }
}

void Greeter::settle_proven(Greeting& greeting) {
  const Handshake& handshake = greeting.handshake();
  Meeting& meeting = meetings_[handshake.peer()];
  greeting.deadline = Clock::now() + connect_timeout_;
  if (!meeting.is_open) return;  // held until this rank wants it, too
  if (meeting.sockets.empty()) meeting.sockets.resize(handshake.socket_count());
  if (meeting.sockets.size() != handshake.socket_count()) {
    log_stranger(greeting.remote(), "its sockets do not agree how many they are");
    greeting.drop();
    return;
  }
  greeting.welcome();
}

void Greeter::settle_done(Greeting& greeting) {
  const auto peer = static_cast<int>(greeting.handshake().peer());
  Meeting& meeting = meetings_[greeting.handshake().peer()];
  Descriptor fd = greeting.take_fd();
  // It may wait for others of its meeting, and its greeting will be gone.
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd.get(), nullptr);
  if (!meeting.is_open) return;
  Descriptor& place = meeting.sockets[greeting.handshake().socket_index()];
  // A second one of the same index: the dialer has given up the first.
  if (!place.is_open()) ++meeting.arrived_count;
  place = std::move(fd);
  if (meeting.arrived_count < meeting.sockets.size()) return;
  meeting.is_open = false;
  logger_->info("rail {}: rank {} is up: {}", place_.device, peer, path_text(greeting.remote()));
  met_.push_back({peer, ok(), std::move(meeting.sockets), greeting.remote()});
}

void Greeter::settle_failed(Greeting& greeting) {
  if (!greeting.is_dialer()) {
    log_stranger(greeting.remote(), greeting.failure().message());
    return;
  }
  const auto peer = static_cast<int>(greeting.handshake().peer());
  Meeting& meeting = meetings_[greeting.handshake().peer()];
  if (!meeting.is_open) return;
  meeting.last_failure = greeting.failure();
  if (greeting.state() == Greeting::State::kRefused) {
    fail_meeting(peer, {greeting.failure().code(),
                        path_text(greeting.remote()) + ": " + greeting.failure().message()});
    return;
  }
  // Perhaps it was crowded out by strangers: dial again until the deadline.
  retries_.push_back(
      {peer, greeting.handshake().socket_index(), Clock::now() + meeting.retry_delay});
  meeting.retry_delay = std::min<Clock::duration>(meeting.retry_delay * 2, kLongestRetry);
}

void Greeter::fail_meeting(int peer, Status why) {
  Meeting& meeting = meetings_[static_cast<std::size_t>(peer)];
  meeting.is_open = false;
  meeting.sockets.clear();
  for (auto& greeting : greetings_) {
    if (greeting->is_dialer() && greeting->handshake().peer() == static_cast<std::uint32_t>(peer)) {
      greeting->drop();
    }
  }
  met_.push_back({peer, std::move(why), {}, meeting.remote});
}

std::string Greeter::path_text(const SocketAddress& remote) const {
  return describe_path(place_.address, place_.device, remote);
}

void Greeter::watch(Greeting& greeting) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = static_cast<Watched*>(&greeting);
  const int rc = epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, greeting.fd(), &event);
  PR_ASSERT(rc == 0 || errno == ENOMEM || errno == ENOSPC);
  if (rc != 0) logger_->warn("rail {}: watch a socket: {}", place_.device, std::strerror(errno));
}

void Greeter::log_stranger(const SocketAddress& remote, const std::string& why) {
  const auto now = Clock::now();
  if (now < next_stranger_log_) {
    ++unlogged_stranger_count_;
    return;
  }
  next_stranger_log_ = now + kStrangerLogInterval;
  logger_->warn("rail {}: dropped a socket from {} to {}: {} ({} more since the last such line)",
                place_.device, remote.text(), listener_.address.text(), why,
                std::exchange(unlogged_stranger_count_, 0));
}

void Greeter::sweep() {
  std::erase_if(greetings_, [](const auto& greeting) { return greeting->fd() < 0; });
}

void Greeter::set_timer() {
  auto earliest = Clock::time_point::max();
  for (const auto& greeting : greetings_) {
    if (!greeting->is_dialer()) earliest = std::min(earliest, greeting->deadline);
  }
  for (const Meeting& meeting : meetings_) {
    if (meeting.is_open) earliest = std::min(earliest, meeting.deadline);
  }
  for (const Retry& retry : retries_) earliest = std::min(earliest, retry.when);
  if (retry_accept_) earliest = std::min(earliest, *retry_accept_);
  if (earliest == Clock::time_point::max()) earliest = {};
  if (earliest == timer_at_) return;
  timer_at_ = earliest;
  itimerspec when{};
  if (earliest != Clock::time_point{}) {
    // A time that has passed must still fire: at least one nanosecond from now.
    const auto left = std::max<std::int64_t>(
        1, std::chrono::duration_cast<std::chrono::nanoseconds>(earliest - Clock::now()).count());
    when.it_value.tv_sec = left / 1'000'000'000;
    when.it_value.tv_nsec = left % 1'000'000'000;
  }
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace polyrail::tcp
