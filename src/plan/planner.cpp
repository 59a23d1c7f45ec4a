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
  // The ends between which bytes must move: one rank of each host, or the ranks of the only host.
  const bool is_across = is_across_hosts(topology);
  std::vector<int> ends;
  std::vector<bool> is_seen(topology.hosts.size(), false);
  for (int rank = 0; rank < spec.rank_count; ++rank) {
    if (is_across && is_seen[topology.rank_hosts[rank]]) continue;
    is_seen[topology.rank_hosts[rank]] = true;
    ends.push_back(rank);
  }
  const auto leads_away = [&](const Rail& rail, int end) {
    return std::any_of(ends.begin(), ends.end(), [&](int other) {
      return other != end && topology.joins(rail.plane, end, other);
    });
  };
  // Ranks of one host use network rails only if nothing nearer joins them.
  const std::vector<Rail>& first_rails = topology.host_of(0).rails;
  const bool is_local =
      !is_across && std::any_of(first_rails.begin(), first_rails.end(), [&](const Rail& rail) {
        return is_host_local(rail.kind) && leads_away(rail, 0);
      });
  double least = std::numeric_limits<double>::infinity();
  double latency_us = std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const int end : ends) {
    double rate = 0;
    for (const Rail& rail : topology.host_of(end).rails) {
      if (is_host_local(rail.kind) != is_local || !leads_away(rail, end)) continue;
      const RailCost cost(rail);
      rate += cost.bytes_per_s();
      latency_us = std::min(latency_us, cost.latency_us());
    }
    least = std::min(least, rate);
    sum += rate;
  }
  if (!(least > 0)) return 0;
  // Network rails belong to the host, not to each of its ranks.
  if (!is_across && !is_local) sum = least;
  const double rate = std::min(least, sum / (2.0 * static_cast<double>(ends.size() - 1)));
  return latency_us + bytes * 1e6 / rate;
}

}  // namespace polyrail
