#include "src/comm/pump.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cmath>

#include "src/base/clock.hpp"

namespace polyrail {
namespace {

constexpr int kSpins = 200;  // rounds without news before sleeping
constexpr double kLongestSleepUs = 20e3;

}  // namespace

bool Pump::run_until(Sink& sink, double deadline_us, const std::function<bool()>& done) {
  std::vector<pollfd> descriptors;
  int quiet_rounds = 0;
  for (;;) {
    bool is_any = false;
    for (const auto& transport : transports_) is_any |= transport->progress(sink);
    if (done()) return true;
    const double now = now_us();
    if (now >= deadline_us) return false;
    quiet_rounds = is_any ? 0 : quiet_rounds + 1;
    if (quiet_rounds < kSpins) {
      // Ranks that share the processor have to answer.
      if (quiet_rounds > 0) sched_yield();
      continue;
    }
    bool may_sleep = true;
    std::size_t prepared = 0;
    descriptors.clear();
    for (; prepared < transports_.size() && may_sleep; ++prepared) {
      may_sleep = transports_[prepared]->prepare_sleep();
      descriptors.push_back({transports_[prepared]->descriptor(), POLLIN, 0});
    }
    if (may_sleep) {
      const double limit_us = std::min(deadline_us - now, kLongestSleepUs);
      poll(descriptors.data(), descriptors.size(), static_cast<int>(std::ceil(limit_us / 1e3)));
    }
    for (std::size_t i = 0; i < prepared; ++i) {
      transports_[i]->end_sleep(!may_sleep || descriptors[i].revents != 0);
    }
  }
}

}  // namespace polyrail
