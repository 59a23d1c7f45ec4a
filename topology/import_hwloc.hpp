// Hosts from files of other tools: hwloc's XML.
#pragma once

#include <string_view>

#include <polyrail/status.hpp>

#include "topology/discover.hpp"

namespace polyrail {

// A host from hwloc's XML (formats 1 and 2, as `lstopo --of xml` writes them), with a rail for each
// network port: several OS devices of one port are one rail, virtual functions beside a physical
// one none. Planes are numbered in the order found; rates are not in such a file. Reads the XML
// itself, because hwloc 2.9 crashes on malformed files. An error begins with "line N: ".
Result<HostProbe> import_hwloc_xml(std::string_view xml);

}  // namespace polyrail
