// The part of discovery that reads network and RDMA devices from sysfs.
#pragma once

#include <string>
#include <vector>

#include "topology/discover.hpp"

namespace polyrail {

// A network interface of this process, for comparison with what sysfs shows: a container may see
// the sysfs of its host, where the same name is another device.
struct LocalInterface {
  std::string name;
  unsigned index = 0;
  std::string hardware_address;  // "02:fc:00:00:00:01", "" if it has none
};
std::vector<LocalInterface> local_interfaces();

// Those interfaces that sysfs knows too, and the RDMA devices. A speed is believed only from the
// driver of a PCI device: veth, tun, bridges and paravirtual NICs report what they like.
std::vector<DeviceProbe> devices_from_sysfs(const std::string& sysfs,
                                            const std::vector<LocalInterface>& interfaces);

// True for an SR-IOV virtual function of a device that this machine has too.
bool is_virtual_function(const std::string& sysfs, const std::string& pci);

}  // namespace polyrail
