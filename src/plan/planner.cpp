#include "src/plan/planner.hpp"

#include <algorithm>
#include <limits>

#include "src/plan/costs.hpp"
#include "src/plan/layout.hpp"
#include "src/plan/routes.hpp"
#include "src/plan/simulate.hpp"
#include "src/plan/study.hpp"

namespace polyrail {
namespace {

Status bad(std::string text) {
  return {StatusCode::kInvalidArgument, "plan: " + std::move(text)};
}

Status check_arguments(const Topology& topology, const CollectiveSpec& spec) {
  if (Status status = check_spec(spec); !status.is_ok()) return status;
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
  return ok();
}

Plan plan_of_one(const CollectiveSpec& spec) {
  PlanBuilder builder(spec, 0);
  const std::uint64_t bytes = Layout(spec).output_bytes(0);
  if (bytes > 0 && !spec.is_in_place) {
    // One rank's result is its input, unrounded.
    builder.copy(0, {Space::kInput, 0, bytes}, {Space::kOutput, 0, bytes},
                 /*is_final=*/reduces(spec.collective), {});
  }
  return std::move(builder).take("copy");
}

// Bytes that must leave or reach a group of ranks, whatever the plan.
struct Traffic {
  double out = 0;
  double in = 0;
};

// `group_of`: by rank. Of blocks: what the others need of this group's, and it of theirs.
std::vector<Traffic> least_traffic(const CollectiveSpec& spec, const std::vector<int>& group_of,
                                   int group_count) {
  const Layout layout(spec);
  const auto whole = static_cast<double>(spec.bytes());
  std::vector<Traffic> traffic(group_count);
  const auto part = [&](int rank) { return static_cast<double>(layout.part(rank).bytes); };
  const int root = group_of[spec.root];
  switch (spec.collective) {
    case Collective::kAllReduce:
      for (Traffic& one : traffic) one = {whole, whole};
      break;
    case Collective::kBroadcast:
      for (Traffic& one : traffic) one.in = whole;
      traffic[root] = {whole, 0};
      break;
    case Collective::kReduce:
      for (Traffic& one : traffic) one.out = whole;
      traffic[root] = {0, whole};
      break;
    case Collective::kAllGather:
      for (Traffic& one : traffic) one.in = whole;
      for (int rank = 0; rank < spec.rank_count; ++rank) {
        traffic[group_of[rank]].out += part(rank);
        traffic[group_of[rank]].in -= part(rank);
      }
      break;
    case Collective::kReduceScatter:
      for (Traffic& one : traffic) one.out = whole;
      for (int rank = 0; rank < spec.rank_count; ++rank) {
        traffic[group_of[rank]].in += part(rank);
        traffic[group_of[rank]].out -= part(rank);
      }
      break;
    case Collective::kGather:
    case Collective::kScatter:
      for (int rank = 0; rank < spec.rank_count; ++rank) {
        if (group_of[rank] == root) continue;
        const bool is_gather = spec.collective == Collective::kGather;
        traffic[is_gather ? group_of[rank] : root].out += part(rank);
        traffic[is_gather ? root : group_of[rank]].in += part(rank);
      }
      break;
    case Collective::kAllToAll:
      for (int from = 0; from < spec.rank_count; ++from) {
        for (int to = 0; to < spec.rank_count; ++to) {
          if (group_of[from] == group_of[to]) continue;
          const auto bytes = static_cast<double>(layout.sent(from, to).bytes);
          traffic[group_of[from]].out += bytes;
          traffic[group_of[to]].in += bytes;
        }
      }
      break;
    case Collective::kScan:
    case Collective::kExclusiveScan:
      // Every group but that of the last rank must give, every one but that of the first must get.
      for (Traffic& one : traffic) one = {whole, whole};
      traffic[group_of[spec.rank_count - 1]].out = 0;
      traffic[group_of[0]].in = 0;
      break;
    case Collective::kBarrier:
      break;
  }
  return traffic;
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
  auto bytes = static_cast<double>(spec.bytes());
  if (bytes == 0) return 0;
  if (spec.rank_count == 1) {
    return spec.is_in_place ? 0 : bytes * 1e6 / copy_rate(topology.host_of(0));
  }
  const double travelling = static_cast<double>(element_bytes(spec, Space::kWire)) /
                            static_cast<double>(size_bytes(spec.type));
  bytes *= travelling;
  // The ends between which bytes must move: one rank of each host, or the ranks of the only host.
  const bool is_across = is_across_hosts(topology);
  std::vector<int> ends;
  std::vector<int> group_of(spec.rank_count);
  std::vector<int> groups(topology.hosts.size(), -1);
  for (int rank = 0; rank < spec.rank_count; ++rank) {
    int& group = groups[topology.rank_hosts[rank]];
    if (!is_across || group < 0) {
      group = static_cast<int>(ends.size());
      ends.push_back(rank);
    }
    group_of[rank] = group;
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
  double latency_us = std::numeric_limits<double>::infinity();
  std::vector<double> rates;  // by end
  for (const int end : ends) {
    double rate = 0;
    for (const Rail& rail : topology.host_of(end).rails) {
      if (is_host_local(rail.kind) != is_local || !leads_away(rail, end)) continue;
      const RailCost cost(rail);
      rate += cost.bytes_per_s();
      latency_us = std::min(latency_us, cost.latency_us());
    }
    if (!(rate > 0)) return 0;
    rates.push_back(rate);
  }
  const std::vector<Traffic> traffic = least_traffic(spec, group_of, static_cast<int>(ends.size()));
  double seconds = 0;
  double all_out = 0;  // what all rails together must carry
  double all_in = 0;
  double all_rates = 0;
  for (std::size_t end = 0; end < ends.size(); ++end) {
    seconds =
        std::max(seconds, travelling * std::max(traffic[end].out, traffic[end].in) / rates[end]);
    all_out += traffic[end].out;
    all_in += traffic[end].in;
    all_rates += rates[end];
  }
  // Network rails belong to the host, not to each of its ranks.
  if (!is_across && !is_local) all_rates = rates.front();
  const double carried = spec.collective == Collective::kAllReduce
                             ? 2.0 * bytes * static_cast<double>(ends.size() - 1)
                             : std::max(all_out, all_in);
  return latency_us + 1e6 * std::max(seconds, carried / all_rates);
}

}  // namespace polyrail
