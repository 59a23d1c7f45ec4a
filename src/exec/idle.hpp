// IdlePolicy: how long to look for news before sleeping.
//
// Spinning pays when the news comes sooner than a sleeper could wake (some 20 us), and only while
// there is a processor to spare. Whether it pays is learned from how long recent waits were;
// whether there is one, from being preempted in the middle of a spin.
#pragma once

#include <algorithm>
#include <cstdint>

namespace polyrail {

class IdlePolicy {
 public:
  // fixed_us: the option spin_us; -1: adaptive.
  explicit IdlePolicy(std::int64_t fixed_us) : fixed_us_(fixed_us) {}

  // A wait begins.
  void on_wait_begin(double now_us) {
    wait_start_us_ = now_us;
    if (fixed_us_ >= 0) {
      budget_us_ = static_cast<double>(fixed_us_);
      return;
    }
    budget_us_ = now_us < banned_until_us_ || short_share_ < kLeastShare ? 0 : kLongestSpinUs;
    last_look_us_ = now_us;
    was_preempted_ = false;
  }
  bool may_spin(double now_us) {
    if (now_us - wait_start_us_ >= budget_us_) return false;
    was_preempted_ |= now_us - last_look_us_ > kPreemptedUs;
    last_look_us_ = now_us;
    return true;
  }

  // The spin was in vain; the caller now sleeps, and spins no more in this wait.
  void on_spin_failed(double now_us) {
    was_preempted_ |= budget_us_ > 0 && now_us - last_look_us_ > kPreemptedUs;
    if (fixed_us_ < 0 && was_preempted_) {
      ban_us_ = std::min(ban_us_ * 2, kLongestBanUs);
      banned_until_us_ = now_us + ban_us_;
    }
    budget_us_ = 0;
    was_preempted_ = false;
  }
  // The wait is over.
  void on_wait_end(double now_us) {
    const double length_us = now_us - wait_start_us_;
    // After a sleep the wake-up itself is part of the length.
    const bool is_short = length_us < kLongestSpinUs + kWakeUs;
    short_share_ += ((is_short ? 1.0 : 0.0) - short_share_) * kLearning;
    if (is_short && now_us > banned_until_us_) ban_us_ = std::max(ban_us_ * 0.999, kLeastBanUs);
  }

 private:
  static constexpr double kLongestSpinUs = 50;
  static constexpr double kWakeUs = 25;
  static constexpr double kPreemptedUs = 300;  // between two looks of a spin: somebody else ran
  static constexpr double kLeastShare = 0.5;
  static constexpr double kLearning = 1.0 / 16;
  static constexpr double kLeastBanUs = 20e3;
  static constexpr double kLongestBanUs = 2e6;

  std::int64_t fixed_us_;
  double wait_start_us_ = 0;
  double budget_us_ = 0;
  double short_share_ = 1;
  double ban_us_ = kLeastBanUs;
  double banned_until_us_ = 0;
  double last_look_us_ = 0;
  bool was_preempted_ = false;
};

}  // namespace polyrail
