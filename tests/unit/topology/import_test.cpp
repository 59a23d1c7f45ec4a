// Reading hwloc's XML: what counts as a port and a GPU, and that odd files are errors.
#include "topology/import_hwloc.hpp"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "topology/pci.hpp"
#include "topology/text.hpp"
#include "topology/xml.hpp"

namespace polyrail {
namespace {

std::string text_of(const HostProbe& probe) {
  Topology topology;
  topology.hosts = {probe.host};
  return to_text(topology);
}

TEST(ImportHwloc, CountsEachGpuAndEachPortOnce) {
  std::ifstream file(POLYRAIL_TEST_DATA "/machine.xml");
  const std::string xml{std::istreambuf_iterator<char>(file), {}};
  const Result<HostProbe> probe = import_hwloc_xml(xml);
  ASSERT_TRUE(probe.is_ok()) << probe.status().message();
  EXPECT_EQ(text_of(probe.value()),
            "host made&up packages 2 numa 2 cores 4\n"
            "  gpu \"Tesla V100-PCIE-16GB\" pci 0000:81:00.0 numa 1\n"
            "  rail eth0 tcp plane 0 device eth0 pci 0000:01:00.0 numa 0\n"
            "  rail eth1 tcp plane 1 device eth1 pci 0000:01:00.0 numa 0\n"
            "  rail ib0 verbs plane 2 device ib0 pci 0000:82:00.0 numa 1\n");
  EXPECT_EQ(probe.value().devices.size(), 3U);
}

TEST(ImportHwloc, PlacesDevicesByTheNearestObjectThatIsNotIo) {
  const auto numa_with_nodeset = [](const std::string& nodeset) {
    const std::string xml =
        "<topology version='2.0'><object type='Machine' nodeset='0x3'><object type='Group' "
        "nodeset='" +
        nodeset +
        "'><object type='Bridge' nodeset='0x1'><object type='PCIDev' pci_busid='0000:01:00.0' "
        "pci_type='0200 [8086:1521] [1028:0000] 01'><object type='OSDev' name='eth0' "
        "osdev_type='2'/></object></object></object></object></topology>";
    const Result<HostProbe> probe = import_hwloc_xml(xml);
    EXPECT_TRUE(probe.is_ok()) << probe.status().message();
    return probe.is_ok() ? probe.value().host.rails.at(0).numa : -2;
  };
  EXPECT_EQ(numa_with_nodeset("0x00000001"), 0);
  EXPECT_EQ(numa_with_nodeset("0x80000000"), 31);
  EXPECT_EQ(numa_with_nodeset("0x00000100,,0x0"), 72);
  EXPECT_EQ(numa_with_nodeset("0x00000003"), -1);          // two nodes
  EXPECT_EQ(numa_with_nodeset("0x1,0x1"), -1);             // two nodes
  EXPECT_EQ(numa_with_nodeset("0xf...f,0x00000000"), -1);  // infinitely many
  EXPECT_EQ(numa_with_nodeset("0x0"), -1);
  EXPECT_EQ(numa_with_nodeset(""), -1);
  EXPECT_EQ(numa_with_nodeset("what"), -1);
}

TEST(ImportHwloc, ShortensNamesThatATopologyCannotHold) {
  const Result<HostProbe> probe =
      import_hwloc_xml("<topology><object type='Machine'><info name='HostName' value='" +
                       std::string(1000, 'x') + "'/></object></topology>");
  ASSERT_TRUE(probe.is_ok());
  EXPECT_EQ(probe.value().host.name, std::string(kTopologyNameBytesMax, 'x'));
}

TEST(ImportHwloc, ReadsFormatOne) {
  const Result<HostProbe> probe = import_hwloc_xml(
      "<topology><object type='Machine'><object type='Socket'><object type='Core'>"
      "<object type='PU'/><object type='PU'/></object></object></object></topology>");
  ASSERT_TRUE(probe.is_ok()) << probe.status().message();
  EXPECT_EQ(text_of(probe.value()), "host host packages 1 cores 1\n");
}

TEST(ImportHwloc, SaysWhatItCannotRead) {
  const struct {
    const char* xml;
    const char* message;
  } cases[] = {
      {"<topology version=\"3.0\"/>",
       "line 1: expected hwloc XML of format 1 or 2, found format 3.0"},
      {"\n<system version=\"1\"/>",
       "line 2: expected <topology>, found <system>: an NCCL topology"},
      {"<html/>", "expected <topology>, found <html>"},
      {"<topology version='2.0'>\n<object/></topology>", "line 2: expected an object with a type"},
      {"<topology version='2.0'><object type='PCIDev'/></topology>", "expected a pci_busid"},
      {"<topology version='2.0'><object type='PCIDev' pci_busid='0000:01:00.0x'/></topology>",
       "expected a pci_busid"},
      {"<topology version='2.0'><object type='PCIDev' pci_busid='0000:01:00.0'/></topology>",
       "expected a pci_type"},
      {"", "line 1: expected an element, found the end of the file"},
      {"host h0", "line 1: expected an element"},
  };
  for (const auto& test : cases) {
    const Result<HostProbe> probe = import_hwloc_xml(test.xml);
    ASSERT_FALSE(probe.is_ok()) << test.xml;
    EXPECT_NE(probe.status().message().find(test.message), std::string::npos)
        << probe.status().message();
  }
}

TEST(PciRules, VirtualFunctionsCountWhereTheyAreAlone) {
  topo::PciDevice device;
  device.address = "0000:00:05.0";
  device.class_id = 0x0200;
  device.model = "ConnectX Family mlx5Gen Virtual Function";
  device.os_devices = {{"ens5", topo::OsDeviceKind::kNetwork, ""}};
  HostProbe probe;
  topo::add_ports({device}, probe);
  ASSERT_EQ(probe.host.rails.size(), 1U);
  EXPECT_TRUE(probe.devices[0].is_virtual_function);
}

TEST(PciRules, RdmaDevicesWithoutInterfacesAreRails) {
  topo::PciDevice device;
  device.os_devices = {{"mlx5_3", topo::OsDeviceKind::kOpenFabrics, ""},
                       {"sda", topo::OsDeviceKind::kOther, ""}};
  HostProbe probe;
  topo::add_ports({device}, probe);
  ASSERT_EQ(probe.host.rails.size(), 1U);
  EXPECT_EQ(probe.host.rails[0].device, "mlx5_3");
  EXPECT_EQ(probe.host.rails[0].kind, RailKind::kVerbs);
}

TEST(PciRules, AcceleratorsAreGpusAndScreensAreNot) {
  const auto gpu_count = [](unsigned class_id, unsigned vendor_id, unsigned device_id) {
    topo::PciDevice device;
    device.class_id = class_id;
    device.vendor_id = vendor_id;
    device.device_id = device_id;
    Host host;
    topo::add_gpus({device}, host);
    return host.gpus.size();
  };
  EXPECT_EQ(gpu_count(0x0302, 0x10de, 0x2330), 1U);  // H100
  EXPECT_EQ(gpu_count(0x1200, 0x1002, 0x74a1), 1U);  // MI300X
  EXPECT_EQ(gpu_count(0x0300, 0x10de, 0x1db4), 1U);
  EXPECT_EQ(gpu_count(0x0300, 0x0000, 0x0000), 1U);  // an old file that hides the vendor
  EXPECT_EQ(gpu_count(0x0300, 0x1a03, 0x2000), 0U);  // ASPEED
  EXPECT_EQ(gpu_count(0x0300, 0x1002, 0x515e), 0U);  // ES1000
  EXPECT_EQ(gpu_count(0x0200, 0x15b3, 0x1013), 0U);
}

TEST(Xml, ReadsElementsAndAttributes) {
  const std::string text =
      "<?xml version='1.0'?><!-- <no> -->\n<a x='1' "
      "y=\"&lt;&amp;&#65;&#x20ac;\"><b/>text<![CDATA[<c/>]]>"
      "\n<b z = 'q\"'></b></a >\n";
  const Result<topo::XmlElement> root = topo::parse_xml(text);
  ASSERT_TRUE(root.is_ok()) << root.status().message();
  EXPECT_EQ(root.value().name, "a");
  EXPECT_EQ(root.value().line, 2);
  EXPECT_EQ(root.value().attribute("x"), "1");
  EXPECT_EQ(root.value().attribute("y"), "<&A\xe2\x82\xac");
  EXPECT_EQ(root.value().attribute("none"), "");
  ASSERT_EQ(root.value().children.size(), 2U);
  EXPECT_EQ(root.value().children[1].line, 3);
  EXPECT_EQ(root.value().children[1].attribute("z"), "q\"");
}

TEST(Xml, ErrorsNameTheLine) {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"\n<a>", "line 2: expected </a>, found the end of the file"},
      {"<a>\n</b>", "line 2: expected </a> for the element of line 1"},
      {"<a/>\n<b/>", "line 2: expected the end of the file after the root element"},
      {"</a>", "expected an element before its end"},
      {"<a x>", "expected '=' after the attribute x"},
      {"<a x=1>", "expected a quote"},
      {"<a x='1>", "expected a closing quote"},
      {"<a x='&bomb;'/>", "expected only &amp;"},
      {"<a x='&#0;'/>", "expected only &amp;"},
      {"<a x='&#xd800;'/>", "expected only &amp;"},
      {"<a x='&'/>", "expected only &amp;"},
      {"<a ?>", "expected an attribute"},
      {"<>", "expected the name of an element"},
      {"<!-- x", "expected --> behind this"},
      {std::string(5000, '<'), "expected the name"},
  };
  for (const auto& test : cases) {
    const Result<topo::XmlElement> root = topo::parse_xml(test.text);
    ASSERT_FALSE(root.is_ok()) << test.text;
    EXPECT_NE(root.status().message().find(test.message), std::string::npos)
        << root.status().message();
  }
}

TEST(Xml, DeepAndLargeFilesAreErrors) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  EXPECT_FALSE(topo::parse_xml(deep).is_ok());
  std::string wide = "<a>";
  for (int i = 0; i < 1100000; ++i) wide += "<b/>";
  EXPECT_NE(topo::parse_xml(wide).status().message().find("at most a million"), std::string::npos);
  EXPECT_NE(topo::parse_xml(std::string(40 << 20, ' ')).status().message().find("32 MiB"),
            std::string::npos);
}

}  // namespace
}  // namespace polyrail
