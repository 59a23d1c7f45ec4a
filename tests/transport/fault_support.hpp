// What the tests of the fault decorator share: a clock, a faulty rail, a sender.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/rank_harness.hpp"
#include "transports/fault/fault.hpp"

namespace polyrail::testing {

// Time that passes when a test says so.
class ManualClock {
 public:
  void advance(std::chrono::nanoseconds by) { now_ += by; }
  std::chrono::steady_clock::time_point now() const { return now_; }
  // What a transport is given; refers to this clock.
  FaultClock reader() {
    return [this] { return now_; };
  }

 private:
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
};

// Loopback whose rank 0 sends through a fault.
inline OpenTransport faulty(const std::string& settings, ManualClock& clock,
                            FaultControl* control = nullptr) {
  return [=, &clock](const TransportContext& context) -> Result<std::unique_ptr<Transport>> {
    auto transport = open_builtin("loopback")(context);
    if (!transport.is_ok() || context.rank != 0) return transport;
    const auto spec = parse_fault_spec("*:" + settings);
    if (!spec.is_ok()) return spec.status();
    return with_fault(std::move(transport).value(), spec.value().clauses.front(), control,
                      clock.reader());
  };
}

// Offers slices of one size from rank 0 to rank 1 as long as they are taken.
class Sender {
 public:
  Sender(RankHarness& ranks, std::uint32_t bytes)
      : ranks_(ranks), source_(bytes, std::byte{1}), target_(bytes) {
    ranks_[1].sink.decide = [this](Endpoint&, const SliceHeader&) {
      return Landing{Landing::How::kInto, target_.data()};
    };
  }
  void send(std::uint64_t most) {
    SliceHeader header;
    header.bytes = static_cast<std::uint32_t>(source_.size());
    for (; sent_ < most; ++sent_) {
      header.signal = static_cast<std::uint32_t>(sent_);
      if (ranks_[0].endpoints[1]->put(header, source_.data(), sent_) == Posted::kBusy) return;
    }
  }
  std::uint64_t sent() const { return sent_; }
  std::size_t arrived() const { return ranks_[1].sink.count(RecordingSink::Kind::kArrived); }
  std::vector<std::uint32_t> arrivals() const {
    std::vector<std::uint32_t> signals;
    for (const auto& event : ranks_[1].sink.events(RecordingSink::Kind::kArrived)) {
      signals.push_back(event.header.signal);
    }
    return signals;
  }

 private:
  RankHarness& ranks_;
  std::vector<std::byte> source_;
  std::vector<std::byte> target_;
  std::uint64_t sent_ = 0;
};

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

inline void settle(RankHarness& ranks) {
  while (ranks.progress()) {
  }
}

}  // namespace polyrail::testing
