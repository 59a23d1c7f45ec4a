// LoopbackEndpoint: one end of a wire, or of none if the peer cannot be reached.
#pragma once

#include <array>
#include <chrono>
#include <vector>

#include "transports/loopback/directory.hpp"
#include "transports/transport.hpp"

namespace polyrail::loopback {

using Clock = std::chrono::steady_clock;

class LoopbackEndpoint final : public Endpoint {
 public:
  // What goes inline into a slot; more is handed over by reference.
  static constexpr std::size_t kBufferedBytes = 256;

  LoopbackEndpoint(int peer, std::string rail, WireEnd end, Clock::time_point deadline);
  // One that progress() will report as down.
  LoopbackEndpoint(int peer, std::string rail, Status why);
  ~LoopbackEndpoint() override;

  EndpointState state() const override { return state_; }
  Posted put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie) override;
  Posted send_control(std::span<const std::byte> message) override;

  bool progress(Sink& sink);
  // Whether progress() would do something; for a sleeper to look before it closes its eyes.
  bool has_news() const;
  bool is_connecting() const { return state_ == EndpointState::kConnecting; }
  Clock::time_point deadline() const { return deadline_; }

  void abandon() override { close(); }
  // The slice at hand is the only one with a target.
  void discard_incoming(std::uint32_t operation) override {
    if (has_landing_ && rx_->slots[taken_ % kSlots].header.operation == operation) {
      landing_.how = Landing::How::kDiscard;
    }
  }

 private:
  static constexpr std::uint32_t kSlots = Direction::kSlots;

  bool has_arrival() const;
  bool has_room(std::uint32_t slots) const { return kSlots - (posted_ - reported_) >= slots; }
  Slot& next_slot() { return tx_->slots[posted_ % kSlots]; }
  void publish();
  bool connect(Sink& sink);
  bool report_acknowledged(Sink& sink);
  bool receive(Sink& sink);
  void receive_control(Sink& sink, const Slot& slot);
  // Moves the next part of the slice at the head and counts it; false if its source is gone.
  bool move_part(Sink& sink, const Slot& slot, std::size_t& moved_bytes);
  void consume();
  void close();
  void go_down(Sink& sink, const Status& why);

  const std::string rail_;
  WireEnd end_;
  EndpointState state_ = EndpointState::kConnecting;
  Clock::time_point deadline_{};
  Status failure_;  // why the attempt to connect failed
  Direction* tx_ = nullptr;
  Direction* rx_ = nullptr;

  // Sending. Sequence numbers count slots and wrap around.
  std::uint32_t posted_ = 0;    // slots published
  std::uint32_t reported_ = 0;  // of them reported as acknowledged; these are free again
  std::array<std::uint64_t, kSlots> cookies_{};

  // Receiving: the slice at the head.
  std::uint32_t taken_ = 0;  // slots consumed
  bool has_landing_ = false;
  bool was_stalled_ = false;  // answered kLater at least once
  Landing landing_;
  std::uint32_t landed_bytes_ = 0;
  std::vector<std::byte> control_;  // parts so far; its capacity is reserved
};

}  // namespace polyrail::loopback
