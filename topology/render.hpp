// Topologies for people and programs: a tree for the terminal, a picture, JSON.
#pragma once

#include <string>

#include "topology/topology.hpp"

namespace polyrail {

// Lines of at most 100 columns. Of more than four hosts, neighbours that are alike but for names
// and addresses are shown once.
std::string render_tree(const Topology& topology);

// An SVG picture: hosts with their NUMA nodes, GPUs and NICs, joined to a switch per plane by lines
// as wide as the rail is fast. Of more than 16 hosts, neighbours that are alike are drawn as one.
std::string render_svg(const Topology& topology);

// One JSON object with stable names; numbers are printed exactly, what is not known is null.
//   {"epoch", "hosts": [{"name", "packages", "numa_nodes", "cores", "copy_bytes_per_s",
//      "gpus": [{"name", "pci", "numa"}],
//      "rails": [{"name", "kind", "plane", "device", "address", "pci", "numa", "provenance",
//                 "latency_us", "bytes_per_s", "curve": [{"bytes", "time_us"}]}]}],
//    "ranks": [host of rank 0, ...]}
std::string to_json(const Topology& topology);

}  // namespace polyrail
