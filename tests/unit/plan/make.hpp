// Small topologies and calls for the planner's tests.
#pragma once

#include <string>
#include <vector>

#include "src/plan/plan.hpp"
#include "topology/topology.hpp"

namespace polyrail::testing {

struct RailSpec {
  double mbit_per_s = 1000;
  double latency_us = 20;
  RailKind kind = RailKind::kTcp;
};

// Host h gets one rank per entry of rank_counts[h] and the rails of rails[h], plane by position.
inline Topology make_topology(const std::vector<int>& rank_counts,
                              const std::vector<std::vector<RailSpec>>& rails) {
  Topology topology;
  for (std::size_t h = 0; h < rank_counts.size(); ++h) {
    Host host;
    host.name = "h" + std::to_string(h);
    for (std::size_t r = 0; r < rails[h].size(); ++r) {
      if (rails[h][r].mbit_per_s <= 0) continue;  // the host has no rail on this plane
      Rail rail;
      rail.name = "rail" + std::to_string(r);
      rail.kind = rails[h][r].kind;
      rail.plane = static_cast<int>(r);
      rail.curve = CostCurve::linear(rails[h][r].latency_us, rails[h][r].mbit_per_s * 1e6 / 8);
      host.rails.push_back(rail);
    }
    topology.hosts.push_back(host);
    for (int i = 0; i < rank_counts[h]; ++i) topology.rank_hosts.push_back(static_cast<int>(h));
  }
  return topology;
}

// One rank per host, all hosts alike.
inline Topology make_equal(int host_count, const std::vector<RailSpec>& rails) {
  return make_topology(std::vector<int>(host_count, 1),
                       std::vector<std::vector<RailSpec>>(host_count, rails));
}

inline CollectiveSpec make_spec(int rank_count, std::uint64_t count, bool is_in_place = false,
                                DataType type = DataType::kFloat32) {
  CollectiveSpec spec;
  spec.rank_count = rank_count;
  spec.count = count;
  spec.type = type;
  spec.is_in_place = is_in_place;
  return spec;
}

}  // namespace polyrail::testing
