// Which rail of one rank is tried with which rail of another, and which rails form a plane. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "topology/rail.hpp"

namespace polyrail {

// One rail as its owner announces it.
struct Offer {
  Rail rail;
  std::string address;  // opaque, for Transport::connect
};

// What a rank announces about itself.
struct Announcement {
  std::string host;  // host_identity()
  std::string host_name;
  std::int64_t process = 0;  // process id
  int core_count = 0;
  int numa_count = 0;
  int package_count = 0;
  std::vector<Offer> offers;
};

// Pairs (rail of a, rail of b) of one kind to be tried, each rail at most once; the same pairs,
// mirrored, whichever rank is called a. Host-local rails pair by name; network rails by the longest
// common address prefix, then by order. `lo` only pairs within a host, and there only with `lo`.
std::vector<std::pair<int, int>> match_rails(const Announcement& a, const Announcement& b,
                                             RailKind kind);

struct Edge {  // rail `rail_a` of rank_a reaches rail `rail_b` of rank_b
  int rank_a, rail_a, rank_b, rail_b;
};

// Plane number of each rail of each rank, -1 for rails that reach nobody. Rails that reach each
// other, directly or through others, form a plane; host-local rails of one kind and name share one
// number on all hosts. No rank has two rails on a plane.
std::vector<std::vector<int>> number_planes(const std::vector<Announcement>& ranks,
                                            const std::vector<Edge>& edges);

}  // namespace polyrail
