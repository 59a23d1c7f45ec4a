// RateEstimate: what a rail to one peer delivers, learned from acknowledgements.
//
// A sample is bytes acknowledged over the time the rail was busy, never bytes over the latency of
// one slice. One sample moves the estimate only a little, up and down alike: acknowledgements come
// in lumps, and a token bucket lets the first bytes after a pause pass at memory speed. A rail that
// stays far below its estimate is believed at once.
#pragma once

#include <algorithm>
#include <cstdint>

namespace polyrail {

class RateEstimate {
 public:
  void reset(double latency_us, double bytes_per_s) {
    latency_us_ = latency_us;
    rate_ = std::max(bytes_per_s, kLeastBytesPerS);
    recent_best_ = rate_;
    window_bytes_ = period_bytes_ = 0;
  }
  double latency_us() const { return latency_us_; }
  double bytes_per_s() const { return rate_; }
  double bytes_per_us() const { return rate_ * 1e-6; }

  // The best rate of about the last second: what to keep under way. Taking the estimate itself
  // would feed back: late acknowledgements lower it, less under way lowers it further.
  double recent_best_bytes_per_us() const { return std::max(recent_best_, rate_) * 1e-6; }

  // The rail had nothing outstanding and now has.
  void on_busy(double now_us) {
    period_start_us_ = window_start_us_ = now_us;
    period_bytes_ = window_bytes_ = 0;
    is_long_ = false;
    is_tainted_ = is_period_tainted_ = false;
  }
  // Bytes were acknowledged. `is_tainted`: their time is not the rail's, since the peer was not
  // ready or acknowledged when it suited it. Acknowledgements come in batches: all of a batch go
  // here before settle().
  void on_acknowledged(std::uint64_t bytes, bool is_tainted) {
    window_bytes_ += bytes;
    period_bytes_ += bytes;
    is_tainted_ = is_tainted_ || is_tainted;
    is_period_tainted_ = is_period_tainted_ || is_tainted;
  }
  // After a batch. `is_idle`: nothing is outstanding any more.
  //
  // A short busy period is one sample, from its start to its last acknowledgement. A long one is
  // cut into windows that begin and end with an acknowledgement: from the start to some
  // acknowledgement would leave out the slice that is half way.
  void settle(double now_us, bool is_idle) {
    const double period_us = now_us - period_start_us_;
    if (is_idle && !is_long_) {
      if (!is_period_tainted_) learn(period_bytes_, period_us - latency_us_);
      return;
    }
    const double window_us = now_us - window_start_us_;
    if (window_us < (is_long_ ? kWindowUs : kLongUs)) return;
    if (is_long_ && !is_tainted_) learn(window_bytes_, window_us);
    is_long_ = true;
    window_start_us_ = now_us;
    window_bytes_ = 0;
    is_tainted_ = false;
  }

 private:
  static constexpr double kLongUs = 12000;  // busy periods up to this are one sample
  static constexpr double kWindowUs = 8000;
  static constexpr std::uint64_t kLeastBytes = 8 * 1024;
  static constexpr double kLeastBytesPerS = 1000;
  static constexpr double kAdaptUs = 20000;    // a sample is believed by busy time over this
  static constexpr double kMostStep = 1.4;     // and only so far away from the estimate, unless
  static constexpr double kCollapse = 0.6;     // samples stay below this share of it
  static constexpr double kCollapseUs = 8000;  // for so much busy time
  static constexpr double kForgetUs = 1e6;

  void learn(std::uint64_t bytes, double busy_us) {
    if (bytes < kLeastBytes || busy_us < 1) return;
    const double sample = static_cast<double>(bytes) / busy_us * 1e6;
    if (sample < kCollapse * rate_) {
      low_bytes_ += bytes;
      low_us_ += busy_us;
      if (low_us_ > kCollapseUs) {
        rate_ = static_cast<double>(low_bytes_) / low_us_ * 1e6;
        low_us_ = 0;
      }
    } else {
      low_us_ = 0;
    }
    if (low_us_ == 0) low_bytes_ = 0;
    const double believed = std::clamp(sample, rate_ / kMostStep, rate_ * kMostStep);
    rate_ += (believed - rate_) * std::min(1.0, busy_us / kAdaptUs);
    rate_ = std::max(rate_, kLeastBytesPerS);
    recent_best_ = std::max(rate_, recent_best_ * (1 - std::min(1.0, busy_us / kForgetUs)));
  }

  double latency_us_ = 30;
  double rate_ = 1e9;
  double recent_best_ = 1e9;
  double period_start_us_ = 0;
  double window_start_us_ = 0;
  std::uint64_t period_bytes_ = 0;
  std::uint64_t window_bytes_ = 0;
  std::uint64_t low_bytes_ = 0;  // of samples in a row that were far too low
  double low_us_ = 0;
  bool is_long_ = false;
  bool is_tainted_ = false;
  bool is_period_tainted_ = false;
};

}  // namespace polyrail
