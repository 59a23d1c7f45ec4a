#include "perf/topo/this_machine.hpp"

#include <utility>

#include <polyrail/info.hpp>
#include <polyrail/options.hpp>

#include "topology/discover.hpp"

namespace polyrail {

Result<ThisMachine> look_at_this_machine() {
  const Result<Options> options = options_from_environment();
  if (!options.is_ok()) return options.status();
  const Result<std::vector<RailReport>> reports = find_rails(options.value());
  if (!reports.is_ok()) return reports.status();
  HostProbe probe = discover_host();
  for (const RailReport& report : reports.value()) {
    Rail rail;
    rail.name = report.name;
    rail.kind = parse_rail_kind(report.kind).value_or(RailKind::kTcp);
    rail.device = report.device;
    rail.address = report.address;
    place_rail(probe, rail);
    probe.host.rails.push_back(std::move(rail));
  }
  ThisMachine machine;
  machine.topology.hosts.push_back(std::move(probe.host));
  machine.warnings = std::move(probe.warnings);
  return machine;
}

}  // namespace polyrail
