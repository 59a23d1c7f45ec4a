// RateEstimate: what a rail to one peer delivers, learned from acknowledgements.
//
// A sample is bytes acknowledged over the time the rail was busy, never bytes over the latency of
// one slice. Falls are believed within a few milliseconds of busy time, rises slowly: a token
// bucket lets the first bytes after a pause pass at memory speed, and a rail that is believed too
// fast holds up every operation, one believed too slow only wastes a little.
#pragma once

#include <algorithm>
#include <cstdint>

namespace polyrail {

class RateEstimate {
 public:
  void reset(double latency_us, double bytes_per_s) {
    latency_us_ = latency_us;
    rate_ = std::max(bytes_per_s, kLeastBytesPerS);
    window_bytes_ = 0;
  }
  double latency_us() const { return latency_us_; }
  double bytes_per_s() const { return rate_; }
  double bytes_per_us() const { return rate_ * 1e-6; }

  // The rail had nothing outstanding and now has.
  void on_busy(double now_us) {
    window_start_us_ = now_us;
    window_bytes_ = 0;
    is_first_window_ = true;
    is_tainted_ = false;
  }
  // Bytes were acknowledged. `is_idle`: nothing is outstanding any more. `is_tainted`: the peer was
  // not ready, so the time is not the rail's.
  void on_acknowledged(double now_us, std::uint64_t bytes, bool is_idle, bool is_tainted) {
    window_bytes_ += bytes;
    is_tainted_ = is_tainted_ || is_tainted;
    double busy_us = now_us - window_start_us_;
    if (!is_idle && busy_us < kWindowUs) return;
    if (is_first_window_) busy_us -= latency_us_;
    if (!is_tainted_ && window_bytes_ >= kLeastBytes && busy_us > 1) {
      learn(static_cast<double>(window_bytes_) / busy_us * 1e6, busy_us);
    }
    window_start_us_ = now_us;
    window_bytes_ = 0;
    is_first_window_ = false;
    is_tainted_ = false;
  }

 private:
  static constexpr double kWindowUs = 4000;
  static constexpr std::uint64_t kLeastBytes = 8 * 1024;
  static constexpr double kLeastBytesPerS = 1000;
  static constexpr double kFallUs = 4000;     // a fall is believed in so much busy time
  static constexpr double kRiseUs = 12000;    // a rise in so much, and
  static constexpr double kDoubleUs = 100e3;  // never doubles faster than this

  void learn(double sample, double busy_us) {
    if (sample < rate_) {
      rate_ += (sample - rate_) * std::min(1.0, busy_us / kFallUs);
    } else {
      const double rise = (sample - rate_) * std::min(1.0, busy_us / kRiseUs);
      rate_ += std::min(rise, rate_ * busy_us / kDoubleUs);
    }
    rate_ = std::max(rate_, kLeastBytesPerS);
  }

  double latency_us_ = 30;
  double rate_ = 1e9;
  double window_start_us_ = 0;
  std::uint64_t window_bytes_ = 0;
  bool is_first_window_ = true;
  bool is_tainted_ = false;
};

}  // namespace polyrail
