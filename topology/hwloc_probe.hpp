// The part of discovery that talks to hwloc; its headers stay in the .cpp file.
#pragma once

#include <polyrail/status.hpp>

#include "topology/discover.hpp"

namespace polyrail {

// This machine without network devices. An error if hwloc cannot look at it.
Result<HostProbe> probe_by_hwloc();

}  // namespace polyrail
