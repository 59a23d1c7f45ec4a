// Link: all rails to one peer, and the puts that go over them.
//
// The plan names a rail for each put. The link cuts puts into slices, and moves bytes that are not
// yet under way to other rails so that all rails are predicted to finish together: first when puts
// are posted, again whenever a rail runs out of work. What is computed never depends on it.
//
// Belongs to the engine's thread. After reserve() nothing here allocates.
#pragma once

#include <cstdint>
#include <vector>

#include <polyrail/status.hpp>

#include "src/exec/rate.hpp"
#include "transports/transport.hpp"

namespace polyrail {

// A put as the executor hands it over. `put` is its number for the listener: the step.
struct Put {
  SliceHeader header;  // offset and bytes are filled in per slice
  const std::byte* source = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t put = 0;
};

// Start-up posts its slices with this bit in the cookie; acknowledgements of them may come late and
// are not the link's.
inline constexpr std::uint64_t kStartUpCookie = std::uint64_t{1} << 63;

class Link {
 public:
  // Told when bytes of a put are acknowledged or copied: their source may change.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_put_progress(std::uint32_t put, std::uint64_t offset, std::uint64_t bytes) = 0;
  };

  Link(int peer, int plane_count, Listener& listener);

  int peer() const { return peer_; }
  // Adds the rail of a plane; at most one per plane.
  void add_rail(int plane, Endpoint* endpoint, const RailCaps& caps, double latency_us,
                double bytes_per_s);
  Endpoint* endpoint(int plane) { return rails_[plane].endpoint; }
  bool can_stream(const Endpoint& endpoint) const;
  // Any rail that is up, the one of least latency; nullptr if there is none.
  Endpoint* best_endpoint();
  void reserve(std::size_t put_count);

  // The plane whose rail would be done with so many more bytes first.
  int best_plane(std::uint64_t bytes) const;
  // Queues a put on the rail its plan names (on another if that is not up).
  void post(const Put& put, int plane);
  // Sends what the rails take. Call after posting and after each progress.
  void pump(double now_us);
  void on_acknowledged(Endpoint& endpoint, const Acknowledgement& done);
  // Moves what the dead rail had not delivered to the others. An error if bytes are lost for good.
  Status on_down(Endpoint& endpoint, const Status& why);

  bool has_work() const { return queued_bytes_ != 0 || queued_puts_ != 0; }
  // Slices taken by rails and not yet acknowledged.
  std::uint64_t outstanding_count() const { return outstanding_count_; }
  // Those among them whose source is still read: they were not copied.
  std::uint64_t posted_count() const { return posted_count_; }
  void set_rebalancing(bool is_on) { is_rebalancing_ = is_on; }
  // Gives up the endpoints that still read sources: when this returns none does.
  void abandon_posted();
  // Forgets everything queued: the operation failed.
  void drop_queued();

  struct RailState {
    int plane = -1;
    double latency_us = 0;
    double bytes_per_s = 0;
    std::uint64_t bytes_sent = 0;
    bool is_up = false;
  };
  RailState rail_state(int plane) const;

 private:
  struct Piece {
    Put put;
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
  };
  struct Flight {  // a slice under way
    Put put;
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    bool is_open = false;
    bool is_buffered = false;
    bool is_after_gap = false;  // the rail may have been idle just before
  };
  static constexpr std::size_t kFlights = 256;  // a power of two
  struct RailQueue {
    Endpoint* endpoint = nullptr;
    RailCaps caps;
    RateEstimate rate;
    std::vector<Piece> pieces;
    std::size_t head = 0;            // first piece not wholly sent
    std::uint64_t queued_bytes = 0;  // not yet cut
    std::uint64_t flight_bytes = 0;
    std::uint64_t flight_count = 0;
    std::uint64_t next_cookie = 0;
    std::uint64_t first_cookie = 0;  // none before it is open
    std::uint64_t bytes_sent = 0;
    bool has_news = false;  // acknowledgements since the last settle()
    bool was_dry = false;   // nothing was left to send when the last slice was posted
    std::vector<Flight> flights;

    bool is_usable() const {
      return endpoint != nullptr && endpoint->state() == EndpointState::kUp;
    }
    bool is_empty() const { return head == pieces.size(); }
  };

  void push(RailQueue& rail, const Piece& piece);
  bool pump_rail(RailQueue& rail, double now_us);
  void settle(double now_us);
  void rebalance(double now_us);
  // How many bytes it moved: at least so many, if there are; the last piece is cut at a multiple
  // of kAlign or not at all.
  std::uint64_t move_bytes(RailQueue& from, RailQueue& to, std::uint64_t bytes);
  std::uint64_t window_bytes(const RailQueue& rail) const;
  std::uint64_t slice_bytes(const RailQueue& rail) const;

  int peer_;
  Listener& listener_;
  std::vector<RailQueue> rails_;  // by plane
  std::vector<int> planes_;       // those that have a rail
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t queued_puts_ = 0;  // pieces in all queues, also those without bytes
  std::uint64_t outstanding_count_ = 0;
  std::uint64_t posted_count_ = 0;
  bool is_rebalancing_ = true;
  bool wants_rebalance_ = false;
  bool has_news_ = false;
};

}  // namespace polyrail
