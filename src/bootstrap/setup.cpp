#include "src/bootstrap/setup.hpp"

#include <algorithm>
#include <limits>

namespace polyrail::bootstrap {

using std::chrono::milliseconds;

PhaseDeadline::PhaseDeadline(std::int64_t timeout_ms)
    : own_(Clock::now() + milliseconds(timeout_ms)),
      nearest_(own_),
      margin_(milliseconds(std::min<std::int64_t>(timeout_ms / 8, 200))),
      patience_(milliseconds(std::clamp<std::int64_t>(timeout_ms / 10, 2000, 3000))) {}

void PhaseDeadline::include(std::uint32_t remaining_ms) {
  nearest_ = std::min(nearest_, Clock::now() + milliseconds(remaining_ms));
  margin_ = std::min<Clock::duration>(margin_, milliseconds(remaining_ms / 8));
}

std::uint32_t PhaseDeadline::remaining_ms() const {
  const std::int64_t left = std::chrono::ceil<milliseconds>(own_ - Clock::now()).count();
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(left, 0, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace polyrail::bootstrap
