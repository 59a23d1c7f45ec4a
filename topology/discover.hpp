// What this machine is: packages, NUMA nodes, cores, GPUs, and where its network devices sit.
//
// Everything here degrades: what a container or an odd machine hides is left unknown, with a
// warning where that is surprising.
#pragma once

#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace polyrail {

// A device of the operating system that rails may use.
struct DeviceProbe {
  std::string name;                // "eth0", "mlx5_0"
  std::string pci;                 // "0000:03:00.0"; "" if it hangs on no PCI device
  int numa = -1;                   // -1: not known
  double nominal_bytes_per_s = 0;  // claimed by the driver of a PCI device; 0: not known
  bool is_virtual_function = false;
  friend bool operator==(const DeviceProbe&, const DeviceProbe&) = default;
};

// One host as it was found. Rails are the transports' to find, so a probe of this machine has none;
// an imported one has a rail for each network port.
struct HostProbe {
  Host host;
  std::vector<DeviceProbe> devices;
  std::vector<std::string> warnings;
  friend bool operator==(const HostProbe&, const HostProbe&) = default;
};

struct DiscoverOptions {
  std::string sysfs = "/sys";
  bool use_hwloc = true;  // without: no packages, NUMA nodes or GPUs
};

// This machine, as far as this process sees it. Cores are those the process may run on.
HostProbe discover_host(const DiscoverOptions& options = {});

// Fills in the rail's PCI address and NUMA node from its device, and a nominal curve if the device
// claims a rate and the rail has no curve. Leaves rails on devices that are not in the probe alone.
void place_rail(const HostProbe& probe, Rail& rail);

}  // namespace polyrail
