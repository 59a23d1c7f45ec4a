#include "topology/pci.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace polyrail::topo {

namespace {

// Display controllers that only drive a server's console, or a virtual screen.
bool is_console_adapter(const PciDevice& device) {
  constexpr std::array<unsigned, 12> kVendors = {
      0x102b,  // Matrox
      0x1a03,  // ASPEED
      0x18ca,  // XGI
      0x126f,  // Silicon Motion
      0x1013,  // Cirrus
      0x1234,  // QEMU standard VGA
      0x1b36,  // QXL
      0x1af4,  // virtio
      0x15ad,  // VMware
      0x80ee,  // VirtualBox
      0x1414,  // Hyper-V
      0x5853,  // Xen
  };
  const bool is_es1000 =
      device.vendor_id == 0x1002 && (device.device_id == 0x515e || device.device_id == 0x5969);
  return is_es1000 ||
         std::find(kVendors.begin(), kVendors.end(), device.vendor_id) != kVendors.end();
}

bool is_virtual_function(const PciDevice& device) {
  return device.model.find("Virtual Function") != std::string::npos;
}

bool is_gpu(const PciDevice& device) {
  const bool is_display = (device.class_id >> 8) == 0x03;
  const bool is_accelerator = device.class_id == 0x1200;
  return (is_accelerator || (is_display && !is_console_adapter(device))) &&
         !is_virtual_function(device);
}

// Old hwloc files call RDMA devices network devices.
bool is_rdma(const OsDevice& device) {
  if (device.kind == OsDeviceKind::kOpenFabrics) return true;
  for (const std::string_view prefix : {"mlx4_", "mlx5_", "mthca", "qib", "hfi1_"}) {
    if (device.name.starts_with(prefix)) return true;
  }
  return false;
}

std::vector<Rail> ports_of(const PciDevice& device) {
  std::vector<std::string> interfaces;
  std::vector<std::string> rdma_devices;
  for (const OsDevice& os_device : device.os_devices) {
    if (os_device.kind == OsDeviceKind::kOther || os_device.name.empty()) continue;
    // Cisco's usNIC is an OpenFabrics device that does not speak verbs.
    if (os_device.name.starts_with("usnic")) continue;
    (is_rdma(os_device) ? rdma_devices : interfaces).push_back(os_device.name);
  }
  std::vector<Rail> rails;
  for (const std::string& name : interfaces.empty() ? rdma_devices : interfaces) {
    Rail rail;
    rail.name = rail.device = name;
    rail.kind = rdma_devices.empty() ? RailKind::kTcp : RailKind::kVerbs;
    rail.pci = device.address;
    rail.numa = device.numa;
    rails.push_back(std::move(rail));
  }
  return rails;
}

}  // namespace

void add_gpus(const std::vector<PciDevice>& devices, Host& host) {
  for (const PciDevice& device : devices) {
    if (!is_gpu(device)) continue;
    Gpu gpu;
    // CUDA, NVML and DRM may each have an OS device for it; the first that knows the model names
    // it.
    for (const OsDevice& os_device : device.os_devices) {
      if (gpu.name.empty()) gpu.name = os_device.gpu_model;
    }
    if (gpu.name.empty()) gpu.name = device.model;
    if (gpu.name.empty()) gpu.name = "gpu" + std::to_string(host.gpus.size());
    gpu.pci = device.address;
    gpu.numa = device.numa;
    host.gpus.push_back(std::move(gpu));
  }
}

void add_ports(const std::vector<PciDevice>& devices, HostProbe& probe) {
  const bool has_physical =
      std::any_of(devices.begin(), devices.end(), [](const PciDevice& device) {
        return !is_virtual_function(device) && !ports_of(device).empty();
      });
  std::set<std::string> names;
  for (const PciDevice& device : devices) {
    const bool is_virtual = is_virtual_function(device);
    if (is_virtual && has_physical) continue;
    for (Rail& rail : ports_of(device)) {
      if (!names.insert(rail.name).second) continue;
      rail.plane = static_cast<int>(probe.host.rails.size());
      probe.devices.push_back({rail.device, rail.pci, rail.numa, 0, is_virtual});
      probe.host.rails.push_back(std::move(rail));
    }
  }
}

}  // namespace polyrail::topo
