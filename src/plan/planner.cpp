#include "src/plan/planner.hpp"

#include <algorithm>
#include <limits>

#include "src/plan/costs.hpp"
#include "src/plan/routes.hpp"
#include "src/plan/simulate.hpp"
#include "src/plan/study.hpp"

namespace polyrail {
namespace {

Status bad(std::string text) {
  return {StatusCode::kInvalidArgument, "plan: " + std::move(text)};
}

Status check_arguments(const Topology& topology, const CollectiveSpec& spec) {
  if (spec.rank_count < 1) return bad("rank_count is " + std::to_string(spec.rank_count));
  if (topology.rank_count() != spec.rank_count) {
    return bad("the topology has " + std::to_string(topology.rank_count()) + " ranks, the call " +
               std::to_string(spec.rank_count));
  }
  for (const int host : topology.rank_hosts) {
    if (host < 0 || host >= static_cast<int>(topology.hosts.size())) {
      return bad("a rank lives on host " + std::to_string(host) + " of " +
                 std::to_string(topology.hosts.size()));
    }
  }
  if (!is_valid(spec.type)) return bad("unknown element type");
  if (!is_valid(spec.op)) return bad("unknown operator");
  if (spec.count > std::numeric_limits<std::uint64_t>::max() / size_bytes(spec.type)) {
    return bad("count " + std::to_string(spec.count) + " overflows the byte count");
  }
  return ok();
}

Plan plan_of_one(const CollectiveSpec& spec) {
  PlanBuilder builder(spec, 0);
  if (spec.bytes() > 0 && !spec.is_in_place) {
    builder.copy(0, {Space::kInput, 0, spec.bytes()}, {Space::kOutput, 0, spec.bytes()},
                 /*is_final=*/true, {});
  }
  return std::move(builder).take("copy");
}

}  // namespace

Result<Plan> make_plan(const Topology& topology, const CollectiveSpec& spec,
                       const PlanOptions& options) {
  if (Status status = check_arguments(topology, spec); !status.is_ok()) return status;
  Plan plan;
  if (spec.rank_count == 1) {
    plan = plan_of_one(spec);
    plan.predicted_us = simulate(plan, topology).total_us;
  } else {
    Result<Study> studied = study(topology, spec, options);
    if (!studied.is_ok()) return studied.status();
    plan = std::move(studied.value().plan);
  }
  plan.limit_us = limit_us(topology, spec);
  return plan;
}

double limit_us(const Topology& topology, const CollectiveSpec& spec) {
  const auto bytes = static_cast<double>(spec.bytes());
  if (bytes == 0) return 0;
  if (spec.rank_count == 1) {
    return spec.is_in_place ? 0 : bytes * 1e6 / copy_rate(topology.host_of(0));
  }
  // The ends between which bytes must move: hosts, or the ranks of the only host.
  const bool is_across = is_across_hosts(topology);
  const bool has_local = !is_across && [&] {
    for (const Rail& rail : topology.host_of(0).rails) {
      if (is_host_local(rail.kind) && rail.plane >= 0) return true;
    }
    return false;
  }();
  std::vector<bool> is_seen(topology.hosts.size(), false);
  double least = std::numeric_limits<double>::infinity();
  double latency_us = std::numeric_limits<double>::infinity();
  double sum = 0;
  int end_count = 0;
  for (const int host : topology.rank_hosts) {
    if (is_across && is_seen[host]) continue;
    is_seen[host] = true;
    double rate = 0;
    for (const Rail& rail : topology.hosts[host].rails) {
      if (rail.plane < 0 || is_host_local(rail.kind) != has_local) continue;
      const RailCost cost(rail);
      rate += cost.bytes_per_s();
      latency_us = std::min(latency_us, cost.latency_us());
    }
    least = std::min(least, rate);
    sum += rate;
    ++end_count;
  }
  if (!(least > 0)) return 0;
  const double rate = std::min(least, sum / (2.0 * (end_count - 1)));
  return latency_us + bytes * 1e6 / rate;
}

std::string explain(const Plan& plan, const Topology&, const PlanOptions&) {
  return plan.algorithm + "\n";
}

}  // namespace polyrail
