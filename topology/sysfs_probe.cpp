#include "topology/sysfs_probe.hpp"

#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

namespace polyrail {

namespace {

namespace fs = std::filesystem;

// The first line of a file; nothing if it cannot be read (a NIC without carrier refuses `speed`).
std::optional<std::string> read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<long> read_number(const fs::path& path) {
  const std::optional<std::string> line = read_line(path);
  if (!line) return std::nullopt;
  char* end = nullptr;
  const long number = std::strtol(line->c_str(), &end, 10);
  if (end == line->c_str()) return std::nullopt;
  return number;
}

// "0000:03:00.0", "10000:e1:00.1"
bool is_pci_address(std::string_view text) {
  const std::size_t bus = text.find(':');
  if (bus < 4 || bus > 8 || text.size() != bus + 8) return false;
  const std::string_view tail = text.substr(bus);
  const std::string_view digits = "0123456789abcdef";
  for (const char c :
       std::string(text.substr(0, bus)) + tail[1] + tail[2] + tail[4] + tail[5] + tail[7]) {
    if (digits.find(c) == std::string_view::npos) return false;
  }
  return tail[3] == ':' && tail[6] == '.';
}

// The directory of the innermost PCI device in a resolved sysfs path: for a virtio NIC the PCI
// device above the virtio device.
fs::path innermost_pci(const fs::path& device) {
  for (fs::path path = device; path.has_relative_path(); path = path.parent_path()) {
    if (is_pci_address(path.filename().string())) return path;
  }
  return {};
}

// Fills in what hangs on the device link. Returns true if the device is a PCI device itself.
bool place(const fs::path& entry, DeviceProbe& device) {
  std::error_code error;
  const fs::path resolved = fs::canonical(entry / "device", error);
  if (error) return false;
  const fs::path pci = innermost_pci(resolved);
  if (pci.empty()) return false;
  device.pci = pci.filename().string();
  device.numa = static_cast<int>(std::max(-1L, read_number(pci / "numa_node").value_or(-1)));
  device.is_virtual_function = fs::exists(pci / "physfn", error);
  return pci == resolved;
}

bool is_same_interface(const fs::path& entry, const LocalInterface& interface) {
  const std::optional<long> index = read_number(entry / "ifindex");
  if (!index || *index != static_cast<long>(interface.index)) return false;
  return interface.hardware_address.empty() ||
         read_line(entry / "address") == interface.hardware_address;
}

}  // namespace

std::vector<LocalInterface> local_interfaces() {
  std::vector<LocalInterface> interfaces;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return interfaces;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_PACKET) continue;
    const auto* link = reinterpret_cast<const sockaddr_ll*>(entry->ifa_addr);
    LocalInterface interface;
    interface.name = entry->ifa_name;
    interface.index = static_cast<unsigned>(link->sll_ifindex);
    // sll_addr holds 8 bytes; the 20 of InfiniBand do not fit and are not compared.
    for (unsigned i = 0; link->sll_halen <= 8 && i < link->sll_halen; ++i) {
      std::array<char, 4> byte{};
      std::snprintf(byte.data(), byte.size(), "%s%02x", i == 0 ? "" : ":", link->sll_addr[i]);
      interface.hardware_address += byte.data();
    }
    interfaces.push_back(std::move(interface));
  }
  freeifaddrs(list);
  return interfaces;
}

std::vector<DeviceProbe> devices_from_sysfs(const std::string& sysfs,
                                            const std::vector<LocalInterface>& interfaces) {
  std::vector<DeviceProbe> devices;
  for (const LocalInterface& interface : interfaces) {
    const fs::path entry = fs::path(sysfs) / "class/net" / interface.name;
    if (!is_same_interface(entry, interface)) continue;
    DeviceProbe device;
    device.name = interface.name;
    if (place(entry, device)) {
      const long mbit_per_s = read_number(entry / "speed").value_or(-1);
      if (mbit_per_s > 0) device.nominal_bytes_per_s = static_cast<double>(mbit_per_s) * 125e3;
    }
    devices.push_back(std::move(device));
  }

  std::error_code error;
  std::vector<fs::path> rdma;
  for (const auto& entry : fs::directory_iterator(fs::path(sysfs) / "class/infiniband", error)) {
    rdma.push_back(entry.path());
  }
  std::sort(rdma.begin(), rdma.end());
  for (const fs::path& entry : rdma) {
    DeviceProbe device;
    device.name = entry.filename().string();
    if (place(entry, device)) {
      // "200 Gb/sec (4X HDR)"
      const std::string rate = read_line(entry / "ports/1/rate").value_or("");
      double gbit_per_s = 0;
      if (std::sscanf(rate.c_str(), "%lf Gb/sec", &gbit_per_s) == 1 && gbit_per_s > 0) {
        device.nominal_bytes_per_s = gbit_per_s * 125e6;
      }
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

bool is_virtual_function(const std::string& sysfs, const std::string& pci) {
  std::error_code error;
  return fs::exists(fs::path(sysfs) / "bus/pci/devices" / pci / "physfn", error);
}

}  // namespace polyrail
