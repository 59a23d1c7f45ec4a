// Start-up, second half: measure what the rails do.
#pragma once

#include <polyrail/bootstrap.hpp>
#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

#include "src/base/log.hpp"
#include "src/comm/network.hpp"

namespace polyrail {

// Collective: measures latency and bandwidth of every rail, and the processor time of a message
// between hosts, and writes them into network.topology, the same on all ranks. All planes are
// measured at the same time, each as a ring of its ranks, in about options.calibration_ms together
// (0: nominal values are written).
//
// Bandwidth is what arrives in the later part of a stream that keeps the rail busy, so that the
// bytes that a token bucket lets through at once after a pause do not count.
Status calibrate(Bootstrap& bootstrap, Network& network, const Options& options, Logger logger);

}  // namespace polyrail
