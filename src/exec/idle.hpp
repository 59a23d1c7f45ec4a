// IdlePolicy: what to do while there is no news - look again at once, let others run first, or
// sleep.
//
// Looking on (spinning) pays when the news comes sooner than a sleeper could wake (some 20 us),
// which is learned from how long recent waits were. Where ranks share processors the one that is
// waited for may need ours: then every look is followed by a yield, after which all ranks of a
// processor have run once, and nobody had to be woken. Others may not give the processor back so
// soon; a waiter that lost it for long sleeps from then on, since who wakes runs at once.
#pragma once

#include <algorithm>
#include <cstdint>

namespace polyrail {

class IdlePolicy {
 public:
  enum class Pass : std::uint8_t { kPause, kYield, kSleep };

  // fixed_us: the option spin_us; -1: adaptive.
  explicit IdlePolicy(std::int64_t fixed_us) : fixed_us_(fixed_us) {}

  // A wait begins.
  void on_wait_begin(double now_us) {
    wait_start_us_ = now_us;
    last_look_us_ = now_us;
    was_preempted_ = false;
    if (fixed_us_ >= 0) {
      budget_us_ = static_cast<double>(fixed_us_);
    } else if (now_us < banned_until_us_ || short_share_ < kLeastShare) {
      budget_us_ = 0;
    } else {
      budget_us_ = is_shared() ? kLongestSharedSpinUs : kLongestSpinUs;
    }
  }
  // How to pass the time until the next look for news.
  Pass next(double now_us) {
    const double gap_us = now_us - last_look_us_;
    last_look_us_ = now_us;
    was_preempted_ |= budget_us_ > 0 && gap_us > kPreemptedUs;
    const double waited_us = now_us - wait_start_us_;
    if (waited_us < budget_us_) {
      return is_shared() || waited_us > kPauseUs ? Pass::kYield : Pass::kPause;
    }
    if (fixed_us_ < 0 && was_preempted_) {
      ban_us_ = std::min(ban_us_ * 2, kLongestBanUs);
      banned_until_us_ = now_us + ban_us_;
    }
    was_preempted_ = false;
    budget_us_ = 0;  // no more spinning in this wait
    return Pass::kSleep;
  }
  // A yield has taken so long.
  void on_yielded(double length_us) {
    shared_share_ += ((length_us > kAloneUs ? 1.0 : 0.0) - shared_share_) * kLearning;
  }
  // The wait is over.
  void on_wait_end(double now_us) {
    const double length_us = now_us - wait_start_us_;
    // After a sleep the wake-up itself is part of the length.
    const bool is_short = length_us < kLongestSpinUs + kWakeUs;
    short_share_ += ((is_short ? 1.0 : 0.0) - short_share_) * kLearning;
    if (is_short && now_us > banned_until_us_) ban_us_ = std::max(ban_us_ * 0.999, kLeastBanUs);
  }

  // Whether others want this processor, as far as yields have told.
  bool is_shared() const { return shared_share_ > kLeastSharedShare; }

 private:
  static constexpr double kLongestSpinUs = 50;
  static constexpr double kLongestSharedSpinUs = 100;  // most of which others run
  static constexpr double kPauseUs = 5;                // alone: so long before the first yield
  static constexpr double kAloneUs = 3;                // a yield to nobody is over sooner
  static constexpr double kLeastSharedShare = 0.2;
  static constexpr double kWakeUs = 25;
  static constexpr double kPreemptedUs = 300;  // between two looks of a spin
  static constexpr double kLeastShare = 0.5;
  static constexpr double kLearning = 1.0 / 16;
  static constexpr double kLeastBanUs = 20e3;
  static constexpr double kLongestBanUs = 2e6;

  std::int64_t fixed_us_;
  double wait_start_us_ = 0;
  double budget_us_ = 0;
  double short_share_ = 1;
  double shared_share_ = 0;
  double ban_us_ = kLeastBanUs;
  double banned_until_us_ = 0;
  double last_look_us_ = 0;
  bool was_preempted_ = false;
};

}  // namespace polyrail
