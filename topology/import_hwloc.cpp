#include "topology/import_hwloc.hpp"

#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "topology/label.hpp"
#include "topology/pci.hpp"
#include "topology/text.hpp"
#include "topology/xml.hpp"

namespace polyrail {

namespace {

using topo::XmlElement;

Status error_at(const XmlElement& element, const std::string& message) {
  return {StatusCode::kInvalidArgument,
          "line " + std::to_string(element.line) + ": " + topo::printable(message)};
}

std::optional<std::uint32_t> parse_hex(std::string_view text) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

// The only member of a set written as hwloc does: 32-bit words from high to low, "0x1,,0x0", where
// an empty word is 0. -1 if there are none, several or infinitely many.
int only_member(std::string_view set) {
  int member = -1;
  for (int word_index = 0; !set.empty(); ++word_index) {
    const std::size_t comma = set.rfind(',');
    std::string_view word = comma == std::string_view::npos ? set : set.substr(comma + 1);
    set = comma == std::string_view::npos ? "" : set.substr(0, comma);
    if (word.starts_with("0x")) word.remove_prefix(2);
    if (word.empty()) continue;
    const auto bits = parse_hex(word);
    if (!bits || std::popcount(*bits) > 1 || (*bits != 0 && member >= 0)) return -1;
    if (*bits != 0 && word_index < 4096) member = word_index * 32 + std::countr_zero(*bits);
  }
  return member;
}

// Long enough for every real name; a topology holds no longer ones.
std::string shortened(std::string_view name) {
  return std::string(name.substr(0, kTopologyNameBytesMax));
}

std::string_view info(const XmlElement& object, std::string_view key) {
  for (const XmlElement& child : object.children) {
    if (child.name == "info" && child.attribute("name") == key) return child.attribute("value");
  }
  return "";
}

class Importer {
 public:
  Result<HostProbe> import(const XmlElement& root) {
    Status status = check_root(root);
    for (const XmlElement& child : root.children) {
      if (status.is_ok() && child.name == "object") status = read_object(child, -1);
    }
    if (!status.is_ok()) return status;
    Host& host = probe_.host;
    host.core_count = core_count_ > 0 ? core_count_ : processor_count_;
    topo::add_gpus(devices_, host);
    topo::add_ports(devices_, probe_);
    if (host.name.empty()) host.name = "host";
    return std::move(probe_);
  }

 private:
  static Status check_root(const XmlElement& root) {
    if (root.name == "system") {
      return error_at(root, "expected <topology>, found <system>: an NCCL topology, not hwloc's");
    }
    if (root.name != "topology" && root.name != "root") {
      return error_at(root,
                      "expected <topology>, found <" + std::string(root.name.substr(0, 40)) + ">");
    }
    const std::string_view version = root.attribute("version");  // format 1.0 has none
    if (version.empty() || version.starts_with("1.") || version.starts_with("2.")) return ok();
    return error_at(root, "expected hwloc XML of format 1 or 2, found format " +
                              std::string(version.substr(0, 16)) +
                              "; write the file with an lstopo of version 2");
  }

  // `numa` is the NUMA node of the nearest object around this one that is not I/O. The depth of
  // the recursion is bounded by parse_xml.
  Status read_object(const XmlElement& object, int numa) {
    const std::string_view type = object.attribute("type");
    if (type.empty()) return error_at(object, "expected an object with a type");
    if (type == "PCIDev") return read_pci_device(object, numa);
    if (type != "Bridge") numa = only_member(object.attribute("nodeset"));
    probe_.host.package_count += type == "Package" || type == "Socket";
    probe_.host.numa_count += type == "NUMANode";
    core_count_ += type == "Core";
    processor_count_ += type == "PU";
    if (probe_.host.name.empty()) probe_.host.name = shortened(info(object, "HostName"));
    return read_children(object, numa);
  }

  Status read_children(const XmlElement& object, int numa) {
    for (const XmlElement& child : object.children) {
      if (child.name != "object") continue;
      const Status status = read_object(child, numa);
      if (!status.is_ok()) return status;
    }
    return ok();
  }

  // pci_busid="0000:81:00.0" pci_type="0200 [8086:1521] [00d9:0021] 01"
  Status read_pci_device(const XmlElement& object, int numa) {
    topo::PciDevice device;
    device.numa = numa;
    device.model = shortened(info(object, "PCIDevice"));
    device.address = shortened(object.attribute("pci_busid"));
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    int end = 0;
    if (std::sscanf(device.address.c_str(), "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function,
                    &end) != 4 ||
        end != static_cast<int>(device.address.size())) {
      return error_at(object, "expected a pci_busid such as 0000:03:00.0");
    }
    const std::string pci_type(object.attribute("pci_type"));
    if (std::sscanf(pci_type.c_str(), "%4x [%4x:%4x]", &device.class_id, &device.vendor_id,
                    &device.device_id) != 3) {
      return error_at(object, "expected a pci_type such as '0200 [8086:1521] [00d9:0021] 01'");
    }
    for (const XmlElement& child : object.children) {
      if (child.name == "object" && child.attribute("type") == "OSDev") {
        device.os_devices.push_back(read_os_device(child));
      }
    }
    devices_.push_back(std::move(device));
    return read_children(object, numa);
  }

  static topo::OsDevice read_os_device(const XmlElement& object) {
    topo::OsDevice device;
    device.name = shortened(object.attribute("name"));
    // The numbers are hwloc's hwloc_obj_osdev_type_t.
    const std::string_view type = object.attribute("osdev_type");
    if (type == "2") device.kind = topo::OsDeviceKind::kNetwork;
    if (type == "3") device.kind = topo::OsDeviceKind::kOpenFabrics;
    device.gpu_model = shortened(info(object, "GPUModel"));
    return device;
  }

  HostProbe probe_;
  std::vector<topo::PciDevice> devices_;
  int core_count_ = 0;
  int processor_count_ = 0;
};

}  // namespace

Result<HostProbe> import_hwloc_xml(std::string_view xml) {
  const Result<XmlElement> root = topo::parse_xml(xml);
  if (!root.is_ok()) return root.status();
  return Importer().import(root.value());
}

}  // namespace polyrail
