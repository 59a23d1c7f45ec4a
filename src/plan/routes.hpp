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

// Routes for equal shares of the vector that together load each rail of each host by its rate,
// where hosts have unlike rails, or not all: every pair of hosts takes its bytes over the planes
// that it has in common and that others need least. `weights`: by rank, how much of the vector it
// reduces in direct or two_level(direct); empty: all the same. Ranks of one host meet as they do on
// `within`. Precondition: every two ranks share a rail.
std::vector<Route> mixed_routes(const Topology& topology, const Route& within,
                                const std::vector<double>& weights, int route_count);

// How much faster large messages could be over mixed routes than with a complete schedule on each
// plane that joins all hosts: 1 if hosts are alike, infinite if no plane joins all.
// Precondition: ranks on at least two hosts.
double pooling_gain(const Topology& topology);

// Whether there are ranks on more than one host.
bool is_across_hosts(const Topology& topology);

}  // namespace polyrail
