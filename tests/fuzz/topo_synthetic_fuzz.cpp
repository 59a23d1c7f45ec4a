// Fuzzes one-line topologies: no line may crash the parser, and what it accepts is a topology that
// the text format can hold.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "topology/synthetic.hpp"
#include "topology/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const polyrail::Result<polyrail::Topology> topology = polyrail::parse_synthetic(input);
  // Large ones are legal and would only make the fuzzer slow.
  if (!topology.is_ok() || topology.value().rank_count() > 1024) return 0;
  const polyrail::Result<polyrail::Topology> back =
      polyrail::parse_topology(to_text(topology.value()));
  if (!back.is_ok() || back.value() != topology.value()) {
    std::fprintf(stderr, "no round trip: %s\n", back.status().message().c_str());
    std::abort();
  }
  return 0;
}
