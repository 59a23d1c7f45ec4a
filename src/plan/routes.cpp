#include "src/plan/routes.hpp"

#include <algorithm>

#include "src/base/assert.hpp"

namespace polyrail {
namespace {

bool is_local_plane(const Topology& topology, int rank, int plane) {
  const Rail* rail = topology.rail(rank, plane);
  return rail != nullptr && is_host_local(rail->kind);
}

// The plane that moves so many bytes from a to b soonest; host-local ones first. -1: none.
int best_plane(const Topology& topology, int a, int b, double bytes) {
  int best = -1;
  bool best_is_local = false;
  double best_us = 0;
  for (int plane = 0; plane < topology.plane_count(); ++plane) {
    if (!topology.joins(plane, a, b)) continue;
    const bool is_local = is_local_plane(topology, a, plane);
    const double us = std::max(RailCost(*topology.rail(a, plane)).time_us(bytes),
                               RailCost(*topology.rail(b, plane)).time_us(bytes));
    const bool is_better = is_local != best_is_local ? is_local : us < best_us;
    if (best >= 0 && !is_better) continue;
    best = plane;
    best_is_local = is_local;
    best_us = us;
  }
  return best;
}

}  // namespace

bool is_across_hosts(const Topology& topology) {
  return std::any_of(topology.rank_hosts.begin(), topology.rank_hosts.end(),
                     [&](int host) { return host != topology.rank_hosts.front(); });
}

Result<std::vector<NamedRoute>> find_routes(const Topology& topology, std::uint64_t bytes) {
  const int n = topology.rank_count();
  const bool is_across = is_across_hosts(topology);
  NamedRoute best{-1, Route::over(-1, n)};
  bool has_local = true;  // every pair of ranks of one host has a host-local rail
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      const int plane = best_plane(topology, a, b, static_cast<double>(bytes));
      if (plane < 0) {
        return Status(StatusCode::kInvalidArgument,
                      "plan: rank " + std::to_string(a) + " on host " + topology.host_of(a).name +
                          " and rank " + std::to_string(b) + " on host " +
                          topology.host_of(b).name + " have no plane in common");
      }
      if (!is_local_plane(topology, a, plane)) has_local = false;
      best.route.planes[a * n + b] = plane;
      best.route.planes[b * n + a] = plane;
    }
  }

  std::vector<NamedRoute> routes;
  for (int plane = 0; plane < topology.plane_count(); ++plane) {
    // Within one host network rails are used only where there is nothing better.
    if (!is_across && has_local && !is_local_plane(topology, 0, plane)) continue;
    NamedRoute route{plane, best.route};
    bool joins_all = true;
    for (int a = 0; a < n && joins_all; ++a) {
      for (int b = a + 1; b < n && joins_all; ++b) {
        if (is_across && topology.rank_hosts[a] == topology.rank_hosts[b]) continue;
        joins_all = topology.joins(plane, a, b);
        route.route.planes[a * n + b] = plane;
        route.route.planes[b * n + a] = plane;
      }
    }
    if (joins_all) routes.push_back(std::move(route));
  }
  if (routes.empty()) routes.push_back(std::move(best));
  return routes;
}

std::vector<RailCost> route_costs(const Topology& topology, const NamedRoute& route) {
  std::vector<RailCost> costs;
  for (int rank = 0; rank < topology.rank_count(); ++rank) {
    int plane = route.plane;
    for (int peer = 0; plane < 0 && peer < topology.rank_count(); ++peer) {
      if (topology.rank_hosts[peer] != topology.rank_hosts[rank]) {
        plane = route.route.between(rank, peer);
      }
    }
    if (plane < 0) plane = route.route.between(rank, rank == 0 ? 1 : 0);
    const Rail* rail = topology.rail(rank, plane);
    PR_ASSERT(rail != nullptr);
    costs.emplace_back(*rail);
  }
  return costs;
}

}  // namespace polyrail
