// Routes: which planes can carry a vector among all ranks, and what they cost each rank.
#pragma once

#include <vector>

#include <polyrail/status.hpp>

#include "src/plan/costs.hpp"
#include "src/plan/piece.hpp"
#include "topology/topology.hpp"

namespace polyrail {

// A route on which all ranks reach each other. Ranks of one host use their best host-local rail if
// they have one; the others use the rail on `plane`, or the best that joins them if `plane` is -1.
struct NamedRoute {
  int plane = -1;
  Route route;
};

// One for each plane that joins all ranks of different hosts, or all ranks if there is one host;
// if no plane does, one of the best rails of each pair for `bytes`. At least one; fails if two
// ranks share no rail.
Result<std::vector<NamedRoute>> find_routes(const Topology& topology, std::uint64_t bytes);

// By rank: the rail that carries most of what it sends over the route, first of all across hosts.
std::vector<RailCost> route_costs(const Topology& topology, const NamedRoute& route);

// Rails that carry bytes between hosts, or between the ranks if there is one host: planes in use.
bool is_across_hosts(const Topology& topology);

}  // namespace polyrail
