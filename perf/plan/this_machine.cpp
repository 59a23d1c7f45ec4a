#include "perf/plan/this_machine.hpp"

#include <thread>

#include <polyrail/polyrail.hpp>

#include "topology/discover.hpp"

namespace polyrail::plan_tool {

Result<Topology> measure_this_machine(int rank_count) {
  Topology topology;
  topology.hosts.push_back(discover_host().host);
  topology.rank_hosts.assign(rank_count, 0);
  Host& host = topology.hosts.front();
  host.rails.clear();
  if (rank_count == 1) return topology;

  Result<Options> options = options_from_environment();
  if (!options.is_ok()) return options.status();
  auto bootstraps = join_in_process(rank_count, options.value());
  if (!bootstraps.is_ok()) return bootstraps.status();
  std::vector<Status> outcomes(rank_count);
  std::vector<RailReport> rails;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < rank_count; ++rank) {
    threads.emplace_back([&, rank] {
      auto communicator =
          Communicator::create(std::move(bootstraps.value()[rank]), options.value());
      outcomes[rank] = communicator.status();
      if (communicator.is_ok() && rank == 0) rails = communicator.value()->rails();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& outcome : outcomes) {
    if (!outcome.is_ok()) return outcome;
  }

  for (const RailReport& report : rails) {
    Rail rail;
    rail.name = report.name;
    rail.kind = parse_rail_kind(report.kind).value_or(RailKind::kTcp);
    rail.device = report.device;
    rail.address = report.address;
    rail.plane = report.plane;
    rail.provenance = Provenance::kMeasured;
    if (report.bytes_per_s > 0) {
      rail.curve = CostCurve::linear(report.latency_us, report.bytes_per_s);
    }
    host.rails.push_back(std::move(rail));
  }
  return topology;
}

}  // namespace polyrail::plan_tool
