// simulate: how long a plan takes on a topology, by playing it through.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/plan.hpp"
#include "topology/topology.hpp"

namespace polyrail {

// One sending side: the rail of a host that all its ranks share, or, on planes that end at the
// border of the host, of one rank.
struct RailUse {
  int host = -1;
  int rank = -1;  // -1: shared by the ranks of the host
  int plane = -1;
  std::uint64_t bytes = 0;  // sent
  double busy_us = 0;
  double last_us = 0;  // when the last of it had arrived
};

struct Simulation {
  double total_us = 0;           // until every rank has its result
  std::vector<double> rank_us;   // by rank
  std::vector<RailUse> rails;    // those that sent anything, by host, rank, plane
  std::vector<double> plane_us;  // by plane: when the last bytes over it had arrived
};

// The model: a rail sends one message after the other, giving the peers equal turns; each arrives
// its latency later; a rail takes in at most its own rate; a rank does one local step at a time, at
// the host's copy rate, along with bytes still landing where the executor may stream; posting and
// taking in a message costs processor time. Acknowledgements delay what depends on them, but not
// the result. Preconditions: check_shape(plan) passes, every put's rail joins the two ranks.
Simulation simulate(const Plan& plan, const Topology& topology);

}  // namespace polyrail
