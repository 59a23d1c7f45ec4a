// Fuzzes the .topo parser: no input may crash it, and what it accepts survives the round trip and
// can be shown in every form.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <nlohmann/json.hpp>

#include "topology/render.hpp"
#include "topology/text.hpp"
#include "topology/xml.hpp"

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
  // Large ones are legal and would only make the fuzzer slow.
  if (text.size() > 20000 || topology.value().rank_count() > 1000) return 0;
  render_tree(topology.value());
  if (!nlohmann::json::accept(to_json(topology.value()))) std::abort();
  if (!polyrail::topo::parse_xml(render_svg(topology.value())).is_ok()) std::abort();
  return 0;
}
