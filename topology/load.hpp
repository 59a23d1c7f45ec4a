// Topologies from files of any format this folder reads.
#pragma once

#include <string>

#include <polyrail/status.hpp>

#include "topology/topology.hpp"

namespace polyrail {

// Reads a file, or standard input for "-": hwloc's XML if it begins with "<", else the .topo
// format. The error names the file and, where it has one, the line.
Result<Topology> load_topology(const std::string& path);

}  // namespace polyrail
