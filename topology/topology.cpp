#include "topology/topology.hpp"

#include <algorithm>

namespace polyrail {

int Topology::plane_count() const {
  int last = -1;
  for (const Host& host : hosts) {
    for (const Rail& rail : host.rails) last = std::max(last, rail.plane);
  }
  return last + 1;
}

const Rail* Topology::rail(int rank, int plane) const {
  if (plane < 0) return nullptr;  // rails whose plane is not known join nobody
  for (const Rail& rail : host_of(rank).rails) {
    if (rail.plane == plane) return &rail;
  }
  return nullptr;
}

bool Topology::joins(int plane, int rank_a, int rank_b) const {
  const Rail* a = rail(rank_a, plane);
  const Rail* b = rail(rank_b, plane);
  if (a == nullptr || b == nullptr) return false;
  const bool ends_at_host = is_host_local(a->kind) || is_host_local(b->kind);
  return !ends_at_host || rank_hosts[rank_a] == rank_hosts[rank_b];
}

}  // namespace polyrail
