// Fuzzes the .topo parser: no input may crash it, and what it accepts survives the round trip.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "topology/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const polyrail::Result<polyrail::Topology> topology = polyrail::parse_topology(input);
  if (!topology.is_ok()) return 0;
  const std::string text = to_text(topology.value());
  const polyrail::Result<polyrail::Topology> back = polyrail::parse_topology(text);
  if (!back.is_ok() || back.value() != topology.value()) {
    std::fprintf(stderr, "no round trip (%s):\n%s\n", back.status().message().c_str(),
                 text.c_str());
    std::abort();
  }
  return 0;
}
