// Fuzzes the reading of hwloc's XML: no file may crash it, and the host it yields can be printed
// and parsed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "topology/import_hwloc.hpp"
#include "topology/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const polyrail::Result<polyrail::HostProbe> probe = polyrail::import_hwloc_xml(input);
  if (!probe.is_ok()) return 0;
  polyrail::Topology topology;
  topology.hosts = {probe.value().host};
  const polyrail::Result<polyrail::Topology> back = polyrail::parse_topology(to_text(topology));
  if (!back.is_ok() || back.value() != topology) {
    std::fprintf(stderr, "no round trip: %s\n", back.status().message().c_str());
    std::abort();
  }
  return 0;
}
