#include "topology/discover.hpp"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "topology/hwloc_probe.hpp"
#include "topology/sysfs_probe.hpp"

namespace polyrail {

namespace {

// Processors this process may run on. The usual set ends at 1024 processors, so the call is
// repeated with larger ones.
int usable_processor_count() {
  for (int set_size = 1024; set_size <= 1 << 20; set_size *= 4) {
    cpu_set_t* set = CPU_ALLOC(set_size);
    if (set == nullptr) return 0;
    const std::size_t bytes = CPU_ALLOC_SIZE(set_size);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return 0;
}

std::string host_name() {
  std::array<char, 256> buffer{};
  if (gethostname(buffer.data(), buffer.size() - 1) != 0 || buffer[0] == '\0') return "localhost";
  return buffer.data();
}

}  // namespace

HostProbe discover_host(const DiscoverOptions& options) {
  HostProbe probe;
  if (options.use_hwloc) {
    Result<HostProbe> by_hwloc = probe_by_hwloc();
    if (by_hwloc.is_ok()) {
      probe = std::move(by_hwloc).value();
    } else {
      probe.warnings.push_back(by_hwloc.status().message());
    }
  }
  probe.host.name = host_name();
  if (probe.host.core_count == 0) probe.host.core_count = usable_processor_count();
  std::erase_if(probe.host.gpus,
                [&](const Gpu& gpu) { return is_virtual_function(options.sysfs, gpu.pci); });
  probe.devices = devices_from_sysfs(options.sysfs, local_interfaces());
  for (DeviceProbe& device : probe.devices) {
    // Firmware often does not say; with one node there is only one answer.
    const bool is_on_only_node = probe.host.numa_count == 1 && !device.pci.empty();
    if (device.numa < 0 && is_on_only_node) device.numa = 0;
  }
  return probe;
}

void place_rail(const HostProbe& probe, Rail& rail) {
  if (rail.device.empty()) return;
  for (const DeviceProbe& device : probe.devices) {
    if (device.name != rail.device) continue;
    rail.pci = device.pci;
    rail.numa = device.numa;
    if (rail.curve.is_empty() && device.nominal_bytes_per_s > 0) {
      rail.curve = CostCurve::linear(nominal_latency_us(rail.kind), device.nominal_bytes_per_s);
      rail.provenance = Provenance::kNominal;
    }
    return;
  }
}

}  // namespace polyrail
