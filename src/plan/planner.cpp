#include "src/plan/planner.hpp"

#include <algorithm>
#include <limits>

#include "src/plan/generators.hpp"

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

double rate(const Topology& topology, int plane) {
  double slowest = std::numeric_limits<double>::infinity();
  for (int rank = 0; rank < topology.rank_count(); ++rank) {
    const CostCurve& curve = topology.rail(rank, plane)->curve;
    slowest = std::min(slowest, curve.is_empty() ? 1e9 : curve.bytes_per_s());
  }
  return std::min(slowest, 1e15);
}

bool joins_all(const Topology& topology, int plane) {
  for (int a = 0; a < topology.rank_count(); ++a) {
    for (int b = a + 1; b < topology.rank_count(); ++b) {
      if (!topology.joins(plane, a, b)) return false;
    }
  }
  return true;
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
  if (spec.rank_count == 1) return plan_of_one(spec);
  PlanBuilder builder(spec, topology.plane_count());
  std::vector<int> planes;
  std::vector<double> rates;
  for (int plane = 0; plane < topology.plane_count(); ++plane) {
    if (!joins_all(topology, plane)) continue;
    planes.push_back(plane);
    rates.push_back(rate(topology, plane));
  }
  if (planes.empty()) return bad("no plane joins all ranks");
  if (spec.bytes() < 65536) {
    const auto best = std::max_element(rates.begin(), rates.end()) - rates.begin();
    planes = {planes[best]};
    rates = {rates[best]};
  }
  std::string algorithm = options.algorithm;
  if (algorithm.empty()) {
    algorithm = spec.rank_count == 2 || spec.bytes() < 65536 ? "direct" : "ring";
  }
  if (algorithm != "ring" && algorithm != "direct" && algorithm != "one_shot") {
    return bad("unknown algorithm \"" + algorithm + "\"");
  }
  const std::vector<Range> shares =
      cut_by_weight({0, spec.bytes()}, rates, builder.element_bytes());
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const Piece piece = piece_of_inputs(spec, shares[i], Route::over(planes[i], spec.rank_count));
    if (algorithm == "ring") {
      ring(builder, piece);
    } else if (algorithm == "direct") {
      direct(builder, piece);
    } else {
      one_shot(builder, piece);
    }
  }
  return std::move(builder).take(algorithm);
}

double limit_us(const Topology&, const CollectiveSpec&) {
  return 0;
}

std::string explain(const Plan& plan, const Topology&, const PlanOptions&) {
  return plan.algorithm + "\n";
}

}  // namespace polyrail
