// PCI devices and what hangs on them: which are GPUs, which are network ports. The same rules for
// this machine and for imported files.
#pragma once

#include <string>
#include <vector>

#include "topology/discover.hpp"

namespace polyrail::topo {

enum class OsDeviceKind { kNetwork, kOpenFabrics, kOther };

struct OsDevice {
  std::string name;
  OsDeviceKind kind = OsDeviceKind::kOther;
  std::string gpu_model;  // "" if it is no GPU or nobody knows
};

struct PciDevice {
  std::string address;     // "0000:03:00.0"
  unsigned class_id = 0;   // 0x0302
  unsigned vendor_id = 0;  // 0x10de
  unsigned device_id = 0;
  std::string model;  // from the PCI data base, "" if nobody knows
  int numa = -1;
  std::vector<OsDevice> os_devices;
};

// Adds the GPUs: one per PCI device, however many OS devices it has; no console adapters and no
// virtual functions.
void add_gpus(const std::vector<PciDevice>& devices, Host& host);

// Adds a rail, and a device, for each network port: one per network interface, or per RDMA device
// that has no interface. An interface beside an RDMA device is a port of it. Ports of virtual
// functions count only if there is no other port.
void add_ports(const std::vector<PciDevice>& devices, HostProbe& probe);

}  // namespace polyrail::topo
