// Greeting: the handshake on one new socket, with its I/O.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include <polyrail/status.hpp>

#include "transports/tcp/descriptor.hpp"
#include "transports/tcp/handshake.hpp"
#include "transports/tcp/socket.hpp"

namespace polyrail::tcp {

using Clock = std::chrono::steady_clock;

// What the data pointer of an epoll event leads to; the base of whatever is watched.
struct Watched {
  enum class Kind : std::uint8_t { kListener, kTimer, kWriters, kGreeting, kSocket };
  explicit Watched(Kind kind_) : kind(kind_) {}
  const Kind kind;
};

class Greeting final : public Watched {
 public:
  enum class State : std::uint8_t {
    kUnderWay,
    kProven,   // acceptor: the peer is who it says; decide whether to welcome() it
    kDone,     // fd() carries frames from now on
    kBroken,   // the other end went away or the system failed; another try may succeed
    kRefused,  // the other end is not who it should be, or nothing listens there
  };

  // Dialer: `fd` is being connected. Acceptor: `fd` was accepted.
  Greeting(Descriptor fd, Handshake handshake, bool is_dialer, const SocketAddress& remote,
           Clock::time_point deadline);

  // Moves bytes as far as they go without blocking.
  void progress();
  void welcome();

  State state() const { return state_; }
  // Why it is kBroken or kRefused.
  const Status& failure() const { return failure_; }
  bool is_dialer() const { return is_dialer_; }
  // True if the peer has not yet proven to be one of the job.
  bool is_stranger() const { return fd_.is_open() && !is_dialer_ && state_ == State::kUnderWay; }
  const Handshake& handshake() const { return handshake_; }
  const SocketAddress& remote() const { return remote_; }
  int fd() const { return fd_.get(); }
  Descriptor take_fd() { return std::move(fd_); }
  void drop() { fd_.close(); }

  Clock::time_point deadline;

 private:
  bool finish_connecting();
  bool write_outgoing();
  // Reads the awaited message and hands it to the handshake; false if there is no more for now.
  bool read_message();
  void look_for_hang_up();
  void end(State state, Status failure);

  Descriptor fd_;
  Handshake handshake_;
  SocketAddress remote_;
  bool is_dialer_;
  bool is_connecting_;
  State state_ = State::kUnderWay;
  Status failure_;
  std::array<std::uint8_t, Handshake::kLongestMessageBytes> message_{};
  std::size_t have_bytes_ = 0;
};

}  // namespace polyrail::tcp
