// Topology: hosts, their rails, and which rank lives where. A value: copies, compares, prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/rail.hpp"

namespace polyrail {

struct Gpu {
  std::string name;
  std::string pci;
  int numa = -1;
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct Host {
  std::string name;
  int package_count = 0;  // 0: not known
  int numa_count = 0;
  int core_count = 0;
  std::vector<Gpu> gpus;
  std::vector<Rail> rails;
  // Memory copy rate of one thread, for the simulator's local steps; 0: a default is used.
  double copy_bytes_per_s = 0;
  friend bool operator==(const Host&, const Host&) = default;
};

// Rails of equal plane number reach each other: across hosts for network rails, within the host
// for host-local ones. Each host has at most one rail per plane.
struct Topology {
  std::vector<Host> hosts;
  std::vector<int> rank_hosts;  // rank_hosts[rank] = index into hosts
  std::uint64_t epoch = 0;      // rises each time the ranks agree on new curves

  int rank_count() const { return static_cast<int>(rank_hosts.size()); }
  int plane_count() const;  // 1 + the largest plane number
  const Host& host_of(int rank) const { return hosts[rank_hosts[rank]]; }
  // The rail of that rank's host on a plane, or nullptr.
  const Rail* rail(int rank, int plane) const;
  // True if both ranks have a rail on the plane and, if it is host-local, share the host.
  bool joins(int plane, int rank_a, int rank_b) const;
  friend bool operator==(const Topology&, const Topology&) = default;
};

}  // namespace polyrail
