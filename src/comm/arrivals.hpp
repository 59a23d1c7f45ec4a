// What a stream tells about the rail that carried it. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace polyrail {

struct Arrival {
  double at_us = 0;         // by whichever clock
  std::uint64_t bytes = 0;  // that had arrived by then, all together
};

// Bytes per second of the best part of the stream: not at its beginning, where a token bucket lets
// bytes pass at any speed, and not while TCP recovers from a loss. 0: too few arrivals to tell.
// `arrivals`: in the order of time.
double arrival_rate(const std::vector<Arrival>& arrivals);

}  // namespace polyrail
