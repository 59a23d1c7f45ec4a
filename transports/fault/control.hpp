// FaultControl: commands to decorated transports while they run. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include <polyrail/status.hpp>

namespace polyrail {

enum class BlackHole : std::uint8_t {
  kNone,
  kOutbound,  // nothing leaves; what arrives is taken in and acknowledged
  kBoth,      // nothing leaves and nothing is looked at
};

// Commands take effect in the next progress() of each transport, which they wake from sleep.
class FaultControl {
 public:
  // The rail from now on: payload bytes per second, 0 for no limit.
  void set_rate(double bytes_per_s);
  // Silence without an error. What is under way is held, as a network does that sends it again.
  void set_black_hole(BlackHole hole);
  // Ends the black hole; what was held goes on its way.
  void heal() { set_black_hole(BlackHole::kNone); }
  // Takes the rail down for good: every endpoint hears `why`, and the peers lose their end of it.
  void fail(Status why);
  // Takes the endpoint to one peer down on this side; the peer sees silence.
  void fail_peer(int peer, Status why);

  // What a transport has to obey.
  struct Orders {
    std::optional<double> bytes_per_s;
    BlackHole hole = BlackHole::kNone;
    std::optional<Status> failure;
    std::map<int, Status> peer_failures;
  };
  // For transports: the number changes with each command; the descriptor is an eventfd to raise.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  Orders orders() const;
  void attach(int event_descriptor);
  void detach(int event_descriptor);

 private:
  template <typename Change>
  void change(const Change& change);

  mutable std::mutex mutex_;
  std::atomic<std::uint64_t> version_{0};
  Orders orders_;
  std::vector<int> event_descriptors_;
};

}  // namespace polyrail
