#include <polyrail/polyrail.h>
#include <polyrail/info.hpp>

#include "kernels/kernels.hpp"
#include "transports/builtin.hpp"

namespace polyrail {
namespace {

struct Known {
  const char* name;
  const char* use;
  const char* absence;
};

constexpr Known kKnown[] = {
    {"loopback", "threads of one process", ""},
    {"shm", "processes of one host", ""},
    {"tcp", "any two hosts", ""},
    {"ucx", "InfiniBand, RoCE and what else UCX speaks", "not in this version"},
    {"verbs", "InfiniBand and RoCE", "not in this version"},
    {"cuda_ipc", "GPUs of one host", "not in this version"},
};

}  // namespace

BuildInfo build_info() {
  BuildInfo info;
  info.version = std::to_string(POLYRAIL_MAJOR) + "." + std::to_string(POLYRAIL_MINOR) + "." +
                 std::to_string(POLYRAIL_PATCH);
  info.instruction_set = instruction_set();
  for (const Known& known : kKnown) {
    TransportInfo transport{known.name, false, known.absence};
    for (const TransportKind& kind : builtin_transports()) {
      if (kind.name == known.name) transport = {known.name, true, known.use};
    }
    info.transports.push_back(std::move(transport));
  }
  return info;
}

Result<std::vector<RailReport>> find_rails(const Options& options) {
  std::vector<RailReport> reports;
  Result<std::vector<TransportKind>> kinds = transports_named(options.transports);
  if (!kinds.is_ok()) return kinds.status();
  for (const TransportKind& kind : kinds.value()) {
    Result<std::vector<Rail>> rails = kind.discover(options);
    if (!rails.is_ok()) return rails.status();
    for (const Rail& rail : rails.value()) {
      RailReport report;
      report.name = rail.name;
      report.kind = std::string(name(rail.kind));
      report.device = rail.device;
      report.address = rail.address;
      if (!rail.curve.is_empty()) {
        report.latency_us = rail.curve.latency_us();
        report.bytes_per_s = rail.curve.bytes_per_s();
      }
      reports.push_back(std::move(report));
    }
  }
  return reports;
}

}  // namespace polyrail
