// TokenBucket: how much may leave by now at a given rate. Exact however seldom it is asked, as long
// as something waits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace polyrail::fault {

class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A rate of 0 is no limit. Starts full.
  TokenBucket(double bytes_per_s, std::uint64_t burst_bytes, Time now)
      : bytes_per_s_(bytes_per_s),
        burst_bytes_(static_cast<double>(burst_bytes)),
        tokens_(burst_bytes_),
        updated_(now) {}

  double bytes_per_s() const { return bytes_per_s_; }
  // Holds from the last advance() on.
  void set_rate(double bytes_per_s) { bytes_per_s_ = bytes_per_s; }

  // Earns tokens up to now. Those beyond the burst count only for what has waited meanwhile: call
  // settle() when nothing waits any more.
  void advance(Time now) {
    tokens_ += std::chrono::duration<double>(now - updated_).count() * bytes_per_s_;
    updated_ = now;
  }
  void settle() { tokens_ = std::min(tokens_, burst_bytes_); }

  // A slice leaves when its last byte may.
  bool take(std::uint64_t bytes) {
    if (bytes_per_s_ <= 0) return true;
    if (tokens_ < static_cast<double>(bytes)) return false;
    tokens_ -= static_cast<double>(bytes);
    return true;
  }

  void give_back(std::uint64_t bytes) {
    if (bytes_per_s_ > 0) tokens_ += static_cast<double>(bytes);
  }

  // When take(bytes) will succeed, if nothing else is taken.
  Time ready_at(std::uint64_t bytes) const {
    if (bytes_per_s_ <= 0) return updated_;
    const double missing = std::max(0.0, static_cast<double>(bytes) - tokens_);
    // Bounded, so that a tiny rate does not overflow; asked again when it is over.
    const double wait_ns = std::min(missing / bytes_per_s_ * 1e9, 3600e9);
    return updated_ + std::chrono::nanoseconds(static_cast<std::int64_t>(std::ceil(wait_ns)));
  }

 private:
  double bytes_per_s_;
  double burst_bytes_;
  double tokens_;
  Time updated_;
};

}  // namespace polyrail::fault
