// FaultEndpoint: decides the fate of each slice and holds it until its time has come.
#pragma once

#include <deque>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "transports/fault/egress.hpp"
#include "transports/fault/tickets.hpp"
#include "transports/transport.hpp"

namespace polyrail::fault {

class FaultEndpoint final : public Endpoint {
 public:
  // `inner` may be forgotten by fail(). `seed` is for this endpoint alone.
  FaultEndpoint(Endpoint& inner, Egress& egress, const FaultClock& clock,
                std::size_t buffered_bytes, std::uint64_t seed);

  EndpointState state() const override;
  Posted put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie) override;
  Posted send_control(std::span<const std::byte> message) override;
  void expect(bool is_expected) override;
  void discard_incoming(std::uint32_t operation) override;
  void abandon() override;

  // What waits first has left the rail and is on its way: it arrives after the delay.
  void depart(Time now);
  // Hands over to the transport below what has been on its way long enough.
  bool deliver(Time now);
  // When deliver() will next have something to do that the transport below does not wake
  // for, or kNever.
  Time due() const;
  std::optional<Acknowledgement> acknowledge(const Acknowledgement& of_ticket) {
    return tickets_.acknowledge(of_ticket);
  }

  // Down for good, and no more use of the endpoint below. Not while something lands: see
  // `landing_count`.
  void fail() { inner_ = nullptr; }
  bool has_failed() const { return inner_ == nullptr; }
  // Slices that the engine has given a target and that have not landed completely. Their memory
  // may still be written, so the endpoint does not go down before they have.
  int landing_count = 0;
  // Set to go down as soon as nothing lands any more.
  std::optional<Status> last_words;

 private:
  struct Held {
    bool is_control = false;
    bool is_dropped = false;
    int copy_count = 1;
    SliceHeader header;
    const std::byte* source = nullptr;  // of a slice
    std::vector<std::byte> message;     // of a control
    std::uint64_t ticket = 0;           // of a slice
    Time arrives{};
    std::uint64_t bytes() const { return is_control ? message.size() : header.bytes; }
  };
  // Drawn once for each slice that is taken, so that it does not depend on time.
  struct Fate {
    bool is_dropped = false;
    bool is_duplicated = false;
  };

  bool is_full(std::uint64_t bytes) const;
  bool is_direct() const;
  Fate draw_fate();
  double draw_share();
  void hold(Held held);
  std::size_t pick(Time now);
  bool hand_over(const Held& held);

  Endpoint* inner_;
  Egress& egress_;
  const FaultClock& clock_;
  const std::size_t buffered_bytes_;
  std::mt19937_64 fates_;
  std::mt19937_64 order_;
  std::optional<Fate> next_fate_;
  Tickets tickets_;
  std::deque<Held> waiting_;  // for their turn at the egress
  std::uint64_t waiting_bytes_ = 0;
  std::deque<Held> under_way_;  // by time of arrival
  bool is_inner_busy_ = false;  // it has refused what has arrived
};

}  // namespace polyrail::fault
