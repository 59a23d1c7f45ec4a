// RecordingSink: a Sink that answers as a test tells it, writes down what it hears, and notes every
// breach of what transport.hpp promises about the order of calls.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "transports/transport.hpp"

namespace polyrail::testing {

class RecordingSink final : public Sink {
 public:
  enum class Kind : std::uint8_t { kUp, kDown, kArrived, kAcknowledged, kControl };
  struct Event {
    Kind kind = Kind::kUp;
    int peer = -1;
    SliceHeader header{};           // kArrived: the slice has landed, been streamed or discarded
    Landing::How how{};             // kArrived: what was answered
    std::uint64_t cookie = 0;       // kAcknowledged
    bool was_stalled = false;       // kAcknowledged
    double landed_us = -1;          // kAcknowledged
    std::uint64_t ahead_bytes = 0;  // kAcknowledged
    std::string text{};             // kControl: the message; kDown: why
  };
  using Decide = std::function<Landing(Endpoint& from, const SliceHeader& header)>;

  // The answer to on_slice; to begin with everything is discarded. With kStream, the bytes are
  // copied to `target`.
  Decide decide = [](Endpoint&, const SliceHeader&) {
    return Landing{Landing::How::kDiscard, nullptr};
  };
  // Called after the event has been written down.
  std::function<void(const Event&)> react = [](const Event&) {};

  const std::vector<Event>& events() const { return events_; }
  std::vector<Event> events(Kind kind) const;
  std::size_t count(Kind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  std::size_t question_count() const { return question_count_; }  // calls of on_slice
  // Forgets the events, so that long tests stay small; not what is under way.
  void forget();
  // Brackets around progress(); calls at any other time are breaches.
  void enter_progress() { is_in_progress_ = true; }
  void leave_progress() { is_in_progress_ = false; }
  // What the transport did against the rules; empty if all is well.
  const std::vector<std::string>& breaches() const { return breaches_; }

  void on_up(Endpoint& endpoint) override;
  void on_down(Endpoint& endpoint, const Status& why) override;
  Landing on_slice(Endpoint& from, const SliceHeader& header) override;
  void on_landed(Endpoint& from, const SliceHeader& header) override;
  void on_bytes(Endpoint& from, const SliceHeader& header, std::uint32_t offset_bytes,
                std::span<const std::byte> bytes) override;
  void on_acknowledged(Endpoint& to, const Acknowledgement& done) override;
  void on_control(Endpoint& from, std::span<const std::byte> message) override;

 private:
  // A slice that was answered kInto or kStream and is not over.
  struct Arriving {
    int peer = -1;
    SliceHeader header{};
    Landing landing;
    std::uint32_t next_bytes = 0;
  };
  std::vector<Arriving>::iterator find(Endpoint& from, const SliceHeader& header, Landing::How how);
  void breach(Endpoint& endpoint, const char* what);
  void check_call(Endpoint& endpoint);
  void record(Event event);

  std::vector<Event> events_;
  std::size_t counts_[5] = {};
  std::size_t question_count_ = 0;
  bool is_in_progress_ = false;
  std::vector<Arriving> arriving_;
  std::vector<int> lost_peers_;
  std::vector<std::string> breaches_;
};

}  // namespace polyrail::testing
