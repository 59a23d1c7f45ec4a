#include "topology/hwloc_probe.hpp"

#include <hwloc.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "topology/pci.hpp"

namespace polyrail {

namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

std::string info(hwloc_obj_t object, const char* key) {
  const char* value = hwloc_obj_get_info_by_name(object, key);
  return value == nullptr ? "" : value;
}

// The NUMA node an I/O object hangs on, by the operating system's number; -1 if it is not one.
int numa_of(hwloc_topology_t topology, hwloc_obj_t device) {
  const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology, device);
  if (place == nullptr || place->nodeset == nullptr) return -1;
  return hwloc_bitmap_weight(place->nodeset) == 1 ? hwloc_bitmap_first(place->nodeset) : -1;
}

topo::PciDevice read_pci_device(hwloc_topology_t topology, hwloc_obj_t object) {
  const auto& pci = object->attr->pcidev;
  std::array<char, 32> address{};
  std::snprintf(address.data(), address.size(), "%04x:%02x:%02x.%x",
                static_cast<unsigned>(pci.domain), static_cast<unsigned>(pci.bus),
                static_cast<unsigned>(pci.dev), static_cast<unsigned>(pci.func));
  topo::PciDevice device;
  device.address = address.data();
  device.class_id = pci.class_id;
  device.vendor_id = pci.vendor_id;
  device.device_id = pci.device_id;
  device.model = info(object, "PCIDevice");
  device.numa = numa_of(topology, object);
  for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type != HWLOC_OBJ_OS_DEVICE || child->name == nullptr) continue;
    topo::OsDevice os_device;
    os_device.name = child->name;
    if (child->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK) {
      os_device.kind = topo::OsDeviceKind::kNetwork;
    } else if (child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) {
      os_device.kind = topo::OsDeviceKind::kOpenFabrics;
    }
    os_device.gpu_model = info(child, "GPUModel");
    device.os_devices.push_back(std::move(os_device));
  }
  return device;
}

// Cores, or processors where the system knows no cores, that the process may run on.
int core_count(hwloc_topology_t topology) {
  const Bitmap usable(hwloc_bitmap_alloc_full());
  // Without an answer all of them count; so for a topology that HWLOC_XMLFILE has put in place.
  if (hwloc_topology_is_thissystem(topology) != 0) {
    hwloc_get_cpubind(topology, usable.get(), HWLOC_CPUBIND_PROCESS);
  }
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_CORE, HWLOC_OBJ_PU}) {
    int count = 0;
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr) {
      count += hwloc_bitmap_intersects(object->cpuset, usable.get());
    }
    if (count > 0) return count;
  }
  return 0;
}

}  // namespace

Result<HostProbe> probe_by_hwloc() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    return Status(StatusCode::kSystemError, std::string("start hwloc: ") + std::strerror(errno));
  }
  const HwlocTopology owner(raw);
  hwloc_topology_t topology = owner.get();
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
  // Components that would start a GPU runtime in this process only to count devices.
  for (const char* component : {"opencl", "cuda", "gl", "levelzero"}) {
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
  if (hwloc_topology_load(topology) != 0) {
    return Status(StatusCode::kSystemError,
                  std::string("look at this machine with hwloc: ") + std::strerror(errno));
  }

  HostProbe probe;
  Host& host = probe.host;
  host.package_count = std::max(0, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE));
  host.numa_count = std::max(0, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
  host.core_count = core_count(topology);
  std::vector<topo::PciDevice> devices;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_pcidev(topology, object)) != nullptr) {
    devices.push_back(read_pci_device(topology, object));
  }
  topo::add_gpus(devices, host);
  return probe;
}

}  // namespace polyrail
