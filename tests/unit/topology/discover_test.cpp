// Discovery: this machine, a made-up sysfs, and what rails are told about their place.
#include "topology/discover.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/sysfs_probe.hpp"

namespace polyrail {
namespace {

namespace fs = std::filesystem;

// A sysfs with a PCI NIC, a virtual function, a virtio NIC, a veth, and an RDMA device.
class SysfsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "polyrail-sysfs-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    add_pci("0000:03:00.0", "1");
    add_pci("0000:03:02.0", "1");
    fs::create_directory_symlink(root_ / "devices/pci/0000:03:00.0",
                                 root_ / "devices/pci/0000:03:02.0/physfn");
    add_pci("0000:00:05.0", "-1");
    fs::create_directories(root_ / "devices/pci/0000:00:05.0/virtio2");
    add_interface("eth0", 2, "0000:03:00.0", "100000");
    add_interface("vf0", 3, "0000:03:02.0", "100000");
    add_interface("ens5", 4, "0000:00:05.0/virtio2", "10000");
    add_interface("veth1", 5, "", "10000");
    const fs::path rdma = root_ / "class/infiniband/mlx5_0";
    fs::create_directories(rdma / "ports/1");
    fs::create_directory_symlink(root_ / "devices/pci/0000:03:00.0", rdma / "device");
    write(rdma / "ports/1/rate", "200 Gb/sec (4X HDR)");
  }
  void TearDown() override { fs::remove_all(root_); }

  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path) << text << "\n";
  }
  void add_pci(const std::string& address, const std::string& numa) {
    const fs::path device = root_ / "devices/pci" / address;
    fs::create_directories(device);
    write(device / "numa_node", numa);
    fs::create_directories(root_ / "bus/pci/devices");
    fs::create_directory_symlink(device, root_ / "bus/pci/devices" / address);
  }
  void add_interface(const std::string& name, unsigned index, const std::string& device,
                     const std::string& speed) {
    const fs::path entry = root_ / "class/net" / name;
    fs::create_directories(entry);
    write(entry / "ifindex", std::to_string(index));
    write(entry / "address", hardware_address(index));
    write(entry / "speed", speed);
    if (!device.empty()) {
      fs::create_directory_symlink(root_ / "devices/pci" / device, entry / "device");
    }
    interfaces_.push_back({name, index, hardware_address(index)});
  }
  static std::string hardware_address(unsigned index) {
    return "02:00:00:00:00:0" + std::to_string(index);
  }

  fs::path root_;
  std::vector<LocalInterface> interfaces_;
};

TEST_F(SysfsTest, PlacesDevicesAndBelievesOnlyPciDrivers) {
  const std::vector<DeviceProbe> expected = {
      {"eth0", "0000:03:00.0", 1, 12.5e9, false}, {"vf0", "0000:03:02.0", 1, 12.5e9, true},
      {"ens5", "0000:00:05.0", -1, 0, false},     {"veth1", "", -1, 0, false},
      {"mlx5_0", "0000:03:00.0", 1, 25e9, false},
  };
  EXPECT_EQ(devices_from_sysfs(root_, interfaces_), expected);
  EXPECT_TRUE(is_virtual_function(root_, "0000:03:02.0"));
  EXPECT_FALSE(is_virtual_function(root_, "0000:03:00.0"));
}

TEST_F(SysfsTest, IgnoresSpeedsThatAreNoSpeeds) {
  for (const char* speed : {"-1", "0", "", "unknown"}) {
    write(root_ / "class/net/eth0/speed", speed);
    EXPECT_EQ(devices_from_sysfs(root_, interfaces_)[0].nominal_bytes_per_s, 0) << speed;
  }
  fs::remove(root_ / "class/net/eth0/speed");
  EXPECT_EQ(devices_from_sysfs(root_, interfaces_)[0].nominal_bytes_per_s, 0);
}

TEST_F(SysfsTest, DoesNotTakeTheHostsDeviceForTheContainers) {
  interfaces_[0].index = 77;                              // another eth0
  interfaces_[1].hardware_address = hardware_address(9);  // the same index by chance
  interfaces_.erase(interfaces_.begin() + 2, interfaces_.end());
  const std::vector<DeviceProbe> devices = devices_from_sysfs(root_, interfaces_);
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].name, "mlx5_0");
}

TEST_F(SysfsTest, AHiddenTreeIsEmpty) {
  EXPECT_THAT(devices_from_sysfs(root_ / "nothing", interfaces_), testing::IsEmpty());
}

TEST(PlaceRail, FillsInThePlaceAndANominalRate) {
  HostProbe probe;
  probe.devices = {{"eth0", "0000:03:00.0", 1, 12.5e9, false}, {"veth1", "", -1, 0, false}};
  Rail rail;
  rail.device = "eth0";
  place_rail(probe, rail);
  EXPECT_EQ(rail.pci, "0000:03:00.0");
  EXPECT_EQ(rail.numa, 1);
  EXPECT_EQ(rail.provenance, Provenance::kNominal);
  EXPECT_EQ(rail.curve, CostCurve::linear(nominal_latency_us(RailKind::kTcp), 12.5e9));
}

TEST(PlaceRail, KeepsWhatWasMeasured) {
  HostProbe probe;
  probe.devices = {{"eth0", "0000:03:00.0", 1, 12.5e9, false}};
  Rail rail;
  rail.device = "eth0";
  rail.provenance = Provenance::kMeasured;
  rail.curve = CostCurve::linear(10, 11e9);
  place_rail(probe, rail);
  EXPECT_EQ(rail.provenance, Provenance::kMeasured);
  EXPECT_EQ(rail.curve, CostCurve::linear(10, 11e9));
}

TEST(PlaceRail, LeavesUnknownDevicesAlone) {
  const HostProbe probe;
  for (const char* device : {"", "eth7"}) {
    Rail rail;
    rail.device = device;
    const Rail before = rail;
    place_rail(probe, rail);
    EXPECT_EQ(rail, before);
  }
}

TEST(DiscoverHost, SeesThisMachine) {
  const HostProbe probe = discover_host();
  EXPECT_FALSE(probe.host.name.empty());
  EXPECT_GE(probe.host.core_count, 1);
  EXPECT_LE(probe.host.core_count, sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_THAT(probe.host.rails, testing::IsEmpty());
  EXPECT_THAT(probe.warnings, testing::IsEmpty());
  EXPECT_EQ(probe.host, discover_host().host);  // interfaces may come and go between the calls
}

TEST(DiscoverHost, WorksWithoutHwlocAndSysfs) {
  const HostProbe probe = discover_host({"/nonexistent", false});
  EXPECT_FALSE(probe.host.name.empty());
  EXPECT_GE(probe.host.core_count, 1);
  EXPECT_THAT(probe.devices, testing::IsEmpty());
  EXPECT_THAT(probe.host.gpus, testing::IsEmpty());
}

}  // namespace
}  // namespace polyrail
