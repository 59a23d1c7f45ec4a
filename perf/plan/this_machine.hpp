// The machine the tool runs on, measured by starting ranks as threads of it.
#pragma once

#include <polyrail/status.hpp>

#include "topology/topology.hpp"

namespace polyrail::plan_tool {

// One host with so many ranks and the rails that join them, with the rates they measured.
Result<Topology> measure_this_machine(int rank_count);

}  // namespace polyrail::plan_tool
