// Greeter: brings the sockets of a rail into being. It listens, dials, lets both ends prove who
// they are, keeps strangers at bay, and hands over the sockets of a peer when all of them are
// there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <polyrail/status.hpp>

#include "src/base/log.hpp"
#include "transports/tcp/greeting.hpp"
#include "transports/tcp/socket.hpp"

namespace polyrail::tcp {

// How meeting one peer ended.
struct Met {
  int peer = 0;
  Status failure;  // kOk: `sockets` holds all sockets to the peer, by index
  std::vector<Descriptor> sockets;
  SocketAddress remote;
};

class Greeter {
 public:
  // Unproven sockets that are held at the same time; one more ends the oldest.
  static constexpr std::size_t kMaxStrangers = 64;

  // Watches its descriptors with `epoll_fd`, which outlives it.
  Greeter(int epoll_fd, SocketPlace place, Listener listener, HandshakeSelf self,
          int connect_timeout_ms, Logger logger);
  Status start();

  const SocketAddress& address() const { return listener_.address; }
  // Begins to meet a peer; the outcome comes from take_met(). At most once per peer. Of two ranks
  // the higher dials, with so many sockets; the lower waits for it.
  void meet(int peer, const SocketAddress& remote, std::uint16_t socket_count);
  // An event of a descriptor that belongs to the greeter (kListener, kTimer, kGreeting).
  void on_event(Watched& watched);
  // Meetings that have ended since the last call. Call it after each batch of events.
  std::vector<Met> take_met();
  bool has_met() const { return !met_.empty(); }

 private:
  struct Meeting {
    bool is_open = false;
    SocketAddress remote;
    Clock::time_point deadline;
    std::vector<Descriptor> sockets;
    std::size_t arrived_count = 0;
    Clock::duration retry_delay{};
    Status last_failure;
  };
  struct Retry {
    int peer = 0;
    std::uint16_t socket_index = 0;
    Clock::time_point when;
  };

  bool dials(int peer) const { return self_.rank > static_cast<std::uint32_t>(peer); }
  void dial_peer(int peer, std::uint16_t socket_index);
  void accept_all();
  void make_room_for_stranger();
  void on_timer();
  void settle(Greeting& greeting);
  void settle_proven(Greeting& greeting);
  void settle_done(Greeting& greeting);
  void settle_failed(Greeting& greeting);
  void fail_meeting(int peer, Status why);
  std::string path_text(const SocketAddress& remote) const;
  void watch(Greeting& greeting);
  void log_stranger(const SocketAddress& remote, const std::string& why);
  void sweep();
  void set_timer();

  int epoll_fd_;
  SocketPlace place_;
  Listener listener_;
  HandshakeSelf self_;
  Clock::duration connect_timeout_;
  Logger logger_;
  Descriptor timer_;
  Watched listener_tag_{Watched::Kind::kListener};
  Watched timer_tag_{Watched::Kind::kTimer};

  std::vector<Meeting> meetings_;                     // by peer
  std::vector<std::unique_ptr<Greeting>> greetings_;  // oldest first
  std::vector<Retry> retries_;
  std::optional<Clock::time_point> retry_accept_;  // the system had no descriptor left
  Clock::time_point timer_at_{};                   // zero: not armed
  std::vector<Met> met_;

  Clock::time_point next_stranger_log_{};
  std::uint64_t unlogged_stranger_count_ = 0;
};

}  // namespace polyrail::tcp
