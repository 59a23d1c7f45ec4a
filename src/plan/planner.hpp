// The planner: from a topology with cost curves and a call to the plan that runs it.
//
// Pure functions: the same arguments give the same plan on every rank.
#pragma once

#include <string>

#include <polyrail/status.hpp>

#include "src/plan/plan.hpp"
#include "topology/topology.hpp"

namespace polyrail {

struct PlanOptions {
  std::string algorithm;  // "ring", "two_level(ring)", ...; "": the planner chooses
  // Whether rails get shares by their cost curves; if not, all usable rails get equal shares.
  bool split_by_measurement = true;
};

// The plan predicted to be fastest. Fails if the call or the topology cannot be right, if two ranks
// share no rail, or if the algorithm asked for does not exist or does not fit.
Result<Plan> make_plan(const Topology& topology, const CollectiveSpec& spec,
                       const PlanOptions& options);

// Least time any plan can take by the rails' rates, in us: what must leave or reach each host by
// its rate, and what all must send together by all rates, and one latency. For all_reduce of S
// bytes among N hosts of rates b that is max(S / min b, 2(N-1)S / sum b). 0: not known, or nothing
// moves.
double limit_us(const Topology& topology, const CollectiveSpec& spec);

// Why make_plan() chose this plan, for people: the candidates with their predicted times, how the
// bytes are split over the rails and which are left out, the bottleneck, and the limit.
std::string explain(const Plan& plan, const Topology& topology, const PlanOptions& options);

}  // namespace polyrail
