// RateEstimate: what a rail to one peer delivers, learned from acknowledgements.
//
// A sample is what arrived over the time from one landing to a later one, by the peer's clock: how
// late the acknowledgement comes says nothing about the rail, nor does the latency of a slice or
// what a token bucket lets pass after a pause. One sample moves the estimate only a little, up and
// down alike; a rail that stays far off is believed at once.
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
    mark_us_ = kNoMark;
    far_side_ = 0;
    newest_us_ = kNoMark;
    lead_us_ = kNoLead;
    news_delay_us_ = 0;
  }
  double latency_us() const { return latency_us_; }
  double bytes_per_s() const { return rate_; }
  double bytes_per_us() const { return rate_ * 1e-6; }

  // The best rate of about the last second: what to keep under way. Taking the estimate itself
  // would feed back: late acknowledgements lower it, less under way lowers it further.
  double recent_best_bytes_per_us() const { return std::max(recent_best_, rate_) * 1e-6; }

  // How many of the bytes under way have still to land, as far as can be told: acknowledgements of
  // the others are on their way, behind what the peer sends.
  double unlanded_bytes(std::uint64_t under_way_bytes, double now_us) const {
    const double since_us = now_us - std::max(period_start_us_ + latency_us_, news_us_);
    const double landed_us = std::clamp(since_us, 0.0, news_delay_us_);
    return std::max(
        0.0, static_cast<double>(under_way_bytes) - news_ahead_bytes_ - landed_us * bytes_per_us());
  }

  // The rail had nothing outstanding and now has.
  void on_busy(double now_us) {
    period_start_us_ = now_us;
    news_ahead_bytes_ = 0;
    period_bytes_ = 0;
    is_period_tainted_ = has_sample_ = false;
    mark_us_ = kNoMark;
  }
  struct Landed {
    std::uint64_t bytes = 0;
    double landed_us = -1;  // by the peer's clock or, if it does not say, when that was heard
    std::uint64_t ahead_bytes = 0;  // that had arrived behind it by then
    bool is_after_gap = false;      // the rail may have been idle before
    bool is_tainted = false;        // its time is not the rail's: the peer was not ready, or
                                    // acknowledged when it suited it
  };
  // A slice was acknowledged. Slices come in batches: all of a batch go here before settle().
  void on_acknowledged(const Landed& slice) {
    period_bytes_ += slice.bytes;
    is_period_tainted_ = is_period_tainted_ || slice.is_tainted;
    if (slice.landed_us < 0) return;
    if (!slice.is_tainted) {
      newest_us_ = slice.landed_us;
      news_ahead_bytes_ = static_cast<double>(slice.ahead_bytes);
    }
    if (slice.is_tainted || slice.is_after_gap || mark_us_ < 0) {
      close_window();
      mark_us_ = slice.is_tainted ? kNoMark : slice.landed_us;
      mark_ahead_bytes_ = ahead_bytes_ = slice.ahead_bytes;
      last_us_ = mark_us_;
      is_continued_ = false;
    } else if (slice.landed_us > mark_us_ || is_continued_) {
      window_bytes_ += slice.bytes;
      last_us_ = std::max(last_us_, slice.landed_us);
      ahead_bytes_ = slice.ahead_bytes;
    }
  }
  // After a batch. `is_idle`: nothing is outstanding any more.
  void settle(double now_us, bool is_idle) {
    note_delay(now_us);
    if (mark_us_ >= 0 && (is_idle || last_us_ - mark_us_ >= kWindowUs)) {
      close_window();
      mark_us_ = last_us_;
      mark_ahead_bytes_ = ahead_bytes_;
      is_continued_ = true;
    }
    if (is_idle && !has_sample_ && !is_period_tainted_) {
      learn_from_period(now_us - period_start_us_ - latency_us_);
    }
  }

 private:
  static constexpr double kDrift = 1e-4;  // of two clocks
  static constexpr double kDelayMargin = 1.5;
  static constexpr double kDelayFade = 0.98;  // per news
  static constexpr double kWindowUs = 8000;
  static constexpr double kLeastWindowUs = 200;
  static constexpr std::uint64_t kLeastBytes = 8 * 1024;
  static constexpr double kLeastBytesPerS = 1000;
  // A sample is believed by its busy time over this: what one landing is late the next makes up
  // for, so over several samples the lumps cancel out.
  static constexpr double kAdaptUs = 80000;
  static constexpr double kMostStep = 1.4;       // and only so far away from the estimate, unless
  static constexpr double kFarBelow = 0.6;       // samples stay below this share of it
  static constexpr double kFarAbove = 1.5;       // or above this one
  static constexpr double kFarUs = 12000;        // for so much busy time
  static constexpr double kFarPeriodUs = 30000;  // the same of whole periods: others may have run
  static constexpr int kLeastPeriods = 32;       // in a row, to take a fall back
  static constexpr int kMostPeriods = 4096;
  static constexpr double kLongPeriodUs = 3000;  // beside which an acknowledgement's way is short
  static constexpr int kLongPeriods = 8;
  static constexpr double kGraceUs = 500;         // of a busy period, for whatever is not the rail
  static constexpr double kLeastSteadyUs = 1000;  // shorter samples may be a token bucket's burst
  static constexpr double kForgetUs = 1e6;
  static constexpr double kNoMark = -1;
  static constexpr double kNoLead = 1e300;

  // How late news of landings come, against the quickest.
  void note_delay(double now_us) {
    if (newest_us_ < 0) return;
    const double lead_us = now_us - newest_us_;
    lead_us_ = std::min(lead_us, lead_us_ + kDrift * (now_us - heard_us_));
    heard_us_ = now_us;
    news_us_ = newest_us_ + lead_us_;
    news_delay_us_ = std::max(kDelayMargin * (lead_us - lead_us_), news_delay_us_ * kDelayFade);
    newest_us_ = kNoMark;
  }

  void close_window() {
    const double window_us = last_us_ - mark_us_;
    const std::uint64_t arrived = window_bytes_ + ahead_bytes_;
    if (mark_us_ >= 0 && arrived >= mark_ahead_bytes_ + kLeastBytes &&
        window_us >= kLeastWindowUs) {
      has_sample_ = true;
      learn(arrived - mark_ahead_bytes_, window_us);
    }
    window_bytes_ = 0;
  }

  // Busy periods of one slice each have no landings to compare. They can tell that a rail is far
  // slower than believed, and take that back, and of a rail that takes long for a slice that it is
  // somewhat slower; no more, since a token bucket lets a slice pass at any speed.
  void learn_from_period(double busy_us) {
    if (period_bytes_ < kLeastBytes || busy_us < 1) return;
    const auto bytes = static_cast<double>(period_bytes_);
    const double most = bytes / std::max(busy_us - kGraceUs, 1.0) * 1e6;
    const double least = bytes / busy_us * 1e6;
    if (most < rate_ * kFarBelow) {
      const double before = rate_;
      fast_period_count_ = 0;
      if (note_far(period_bytes_, busy_us, -1, kFarPeriodUs)) rate_before_fall_ = before;
    } else if (rate_before_fall_ > 0 && least > rate_ * kFarAbove) {
      far_side_ = 0;
      if (++fast_period_count_ < periods_to_recover_) return;
      believe(rate_before_fall_, 0);
      rate_before_fall_ = 0;
      // Should it fall again, those were bursts: believed less each time.
      periods_to_recover_ = std::min(2 * periods_to_recover_, kMostPeriods);
    } else {
      far_side_ = 0;
      if (busy_us >= kLongPeriodUs) note_long_period(least, busy_us);
    }
  }

  // The best of several: what is late for other reasons does not count.
  void note_long_period(double bytes_per_s, double busy_us) {
    best_of_long_ = std::max(best_of_long_, bytes_per_s);
    if (++long_period_count_ < kLongPeriods) return;
    if (best_of_long_ < rate_) believe(best_of_long_, busy_us);
    best_of_long_ = 0;
    long_period_count_ = 0;
  }

  void learn(std::uint64_t bytes, double busy_us) {
    const double sample = static_cast<double>(bytes) / busy_us * 1e6;
    if (sample < rate_ * kFarBelow) {
      note_far(bytes, busy_us, -1, kFarUs);
    } else if (sample <= rate_ * kFarAbove) {
      far_side_ = 0;
    } else if (busy_us > kLeastSteadyUs) {
      note_far(bytes, busy_us, 1, kFarUs);
    }
    rate_before_fall_ = 0;
    periods_to_recover_ = kLeastPeriods;
    const double believed = std::clamp(sample, rate_ / kMostStep, rate_ * kMostStep);
    believe(rate_ + (believed - rate_) * std::min(1.0, busy_us / kAdaptUs), busy_us);
  }

  // Far off for some time, and always to the same side: the rail has changed. True if so.
  bool note_far(std::uint64_t bytes, double busy_us, int side, double enough_us) {
    if (side != far_side_) {
      far_side_ = side;
      far_bytes_ = 0;
      far_us_ = 0;
    }
    far_bytes_ += bytes;
    far_us_ += busy_us;
    if (far_us_ < enough_us) return false;
    far_side_ = 0;
    believe(static_cast<double>(far_bytes_) / far_us_ * 1e6, busy_us);
    return true;
  }

  void believe(double bytes_per_s, double busy_us) {
    rate_ = std::max(bytes_per_s, kLeastBytesPerS);
    recent_best_ = std::max(rate_, recent_best_ * (1 - std::min(1.0, busy_us / kForgetUs)));
  }

  double latency_us_ = 30;
  double rate_ = 1e9;
  double recent_best_ = 1e9;
  double period_start_us_ = 0;
  std::uint64_t period_bytes_ = 0;
  bool is_period_tainted_ = false;
  bool has_sample_ = false;     // in this period
  double mark_us_ = kNoMark;    // the landing from which the window runs, by the peer's clock
  double last_us_ = kNoMark;    // the latest landing in it
  bool is_continued_ = false;   // slices that landed at the mark count: a window ended between them
  double newest_us_ = kNoMark;  // landing heard of since the last settle(), by the peer's clock
  double lead_us_ = kNoLead;    // of our clock before the peer's, latency included
  double heard_us_ = 0;
  double news_us_ = 0;                  // the latest landing heard of, by our clock,
  double news_ahead_bytes_ = 0;         // and what had arrived behind it
  double news_delay_us_ = 0;            // at most, until a landing is heard of
  std::uint64_t window_bytes_ = 0;      // that landed in it
  std::uint64_t mark_ahead_bytes_ = 0;  // that had arrived at its beginning without having landed
  std::uint64_t ahead_bytes_ = 0;       // the same at its end
  int far_side_ = 0;  // of samples in a row that were far off: -1 below, 1 above the estimate
  std::uint64_t far_bytes_ = 0;
  double far_us_ = 0;
  double rate_before_fall_ = 0;  // if only whole periods have told that it fell; else 0
  double best_of_long_ = 0;      // of the long periods since the last eight
  int long_period_count_ = 0;
  int fast_period_count_ = 0;  // in a row, since then
  int periods_to_recover_ = kLeastPeriods;
};

}  // namespace polyrail
