// Tree, JSON and picture: what they say, that it fits, and that odd names do no harm.
#include "topology/render.hpp"

#include <limits>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "topology/label.hpp"
#include "topology/svg.hpp"
#include "topology/synthetic.hpp"
#include "topology/text.hpp"
#include "topology/xml.hpp"

namespace polyrail {
namespace {

constexpr std::string_view kOdd = R"(
host "a <very> \"long\" & odd name that goes on and on and on and on for more than anybody needs" packages 2 numa 2 cores 64
  gpu "NVIDIA H100 80GB HBM3 <&>" pci 0000:18:00.0 numa 0
  gpu "nowhere"
  rail "rail <&> with a name that is long" tcp plane 0 address "fe80::fc:ff:fe00:1%enp3s0f0np0" rate 1gbit numa 0
  rail eth1 tcp rate 10gbit latency 20us measured
  rail eth2 verbs
  rail flat tcp plane 7 curve 0:5us 100:5us
  rail far ucx plane 1000000 numa 9
  rail shm shm plane 5 curve 0:0.3us 65536:12us measured
host "\xff\xc3\xa9\x01]]>"
host nothing
ranks 0*8 1 2
)";

std::vector<Topology> topologies() {
  std::vector<Topology> all = {Topology(), parse_topology(kOdd).value()};
  for (const char* line :
       {"1 host", "2 hosts, rails 1gbit+2.5gbit+500mbit",
        "4 hosts x 2 ranks, shm 10GBps, 2 rails 1gbit",
        "8 hosts x 8 gpus, 2 numa, 2 packages, 96 cores, 8 verbs 400gbit, cuda_ipc 450GBps",
        "20 hosts, rails 1gbit, host 7 rails 2gbit", "3 hosts x 100 gpus, 4 numa, 100 rails 1gbit",
        "100 hosts, host 1 shm 1GBps, host 3 shm 2GBps"}) {
    all.push_back(parse_synthetic(line).value());
  }
  return all;
}

TEST(RenderTree, ShowsHostsNodesGpusAndRails) {
  const Topology topology = parse_topology(R"(
host h0 packages 1 numa 2 cores 16 copy 9GBps
  gpu "Tesla V100" pci 0000:07:00.0 numa 0
  rail rail0 tcp plane 0 device eth0 address 10.0.0.1 rate 1gbit latency 25us measured numa 0
  rail eth1 tcp plane 1 device eth1 rate 500mbit latency 25us numa 1
  rail shm shm plane 2 rate 10GBps latency 0.3us
  rail new verbs
host h1
ranks 0 0 1
epoch 3
)")
                                .value();
  EXPECT_EQ(render_tree(topology),
            "2 hosts, 3 ranks, 3 planes, epoch 3\n"
            "├─ h0: ranks 0-1; 1 package, 2 NUMA nodes, 16 cores, copies 9 GB/s\n"
            "│  ├─ NUMA node 0\n"
            "│  │  ├─ GPU Tesla V100  0000:07:00.0\n"
            "│  │  └─ rail0  tcp    plane 0  1 Gbit/s    25 us   measured  eth0 10.0.0.1\n"
            "│  ├─ NUMA node 1\n"
            "│  │  └─ eth1   tcp    plane 1  500 Mbit/s  25 us   nominal\n"
            "│  ├─ shm       shm    plane 2  10 GB/s     300 ns  nominal\n"
            "│  └─ new       verbs  plane ?  -           -\n"
            "└─ h1: rank 2\n");
}

TEST(RenderTree, ShowsAlikeHostsOnce) {
  const std::string tree =
      render_tree(parse_synthetic("6 hosts x 2 ranks, rails 1gbit, host 4 rails 500mbit").value());
  EXPECT_NE(tree.find("├─ h0 to h3 (4 hosts alike): ranks 0-7\n"), std::string::npos) << tree;
  EXPECT_NE(tree.find("├─ h4: ranks 8-9\n"), std::string::npos) << tree;
  EXPECT_NE(tree.find("└─ h5: ranks 10-11\n"), std::string::npos) << tree;
}

TEST(RenderTree, FitsIntoAHundredColumns) {
  for (const Topology& topology : topologies()) {
    std::istringstream lines(render_tree(topology));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(topo::character_count(line), 100U) << line;
      EXPECT_EQ(topo::printable(line), line);
    }
  }
}

TEST(RenderJson, HoldsEveryFieldExactly) {
  Topology topology = parse_topology(R"(
host h0 packages 1 numa 2 cores 16 copy 9.1GBps
  gpu g pci 0000:07:00.0 numa 0
  rail rail0 tcp plane 0 device eth0 address 10.0.0.1 pci 0000:03:00.0 numa 1 curve 1:0.1us 3:0.7us message 2.5us measured
  rail flat shm plane 1 curve 0:5us
  rail new verbs
host h1
ranks 0 0 1
epoch 18446744073709551615
)")
                          .value();
  const nlohmann::json json = nlohmann::json::parse(to_json(topology));
  EXPECT_EQ(json["epoch"], UINT64_MAX);
  EXPECT_EQ(json["ranks"], (std::vector<int>{0, 0, 1}));
  const nlohmann::json& host = json["hosts"][0];
  EXPECT_EQ(host["name"], "h0");
  EXPECT_EQ(host["packages"], 1);
  EXPECT_EQ(host["numa_nodes"], 2);
  EXPECT_EQ(host["cores"], 16);
  EXPECT_EQ(host["copy_bytes_per_s"], 9.1e9);
  EXPECT_EQ(host["gpus"][0], (nlohmann::json{{"name", "g"}, {"pci", "0000:07:00.0"}, {"numa", 0}}));
  const nlohmann::json& rail = host["rails"][0];
  EXPECT_EQ(rail["kind"], "tcp");
  EXPECT_EQ(rail["plane"], 0);
  EXPECT_EQ(rail["device"], "eth0");
  EXPECT_EQ(rail["address"], "10.0.0.1");
  EXPECT_EQ(rail["pci"], "0000:03:00.0");
  EXPECT_EQ(rail["numa"], 1);
  EXPECT_EQ(rail["provenance"], "measured");
  EXPECT_EQ(rail["latency_us"], 0.1);
  EXPECT_EQ(rail["bytes_per_s"], topology.hosts[0].rails[0].curve.bytes_per_s());
  EXPECT_EQ(rail["curve"][1], (nlohmann::json{{"bytes", 3}, {"time_us", 0.7}}));
  EXPECT_EQ(rail["message_us"], 2.5);
  EXPECT_TRUE(host["rails"][1]["message_us"].is_null());
  EXPECT_TRUE(host["rails"][1]["bytes_per_s"].is_null());  // infinite
  EXPECT_TRUE(host["rails"][2]["latency_us"].is_null());
  EXPECT_TRUE(host["rails"][2]["plane"].is_null());
  EXPECT_TRUE(json["hosts"][1]["cores"].is_null());
}

TEST(RenderJson, IsValidForOddNames) {
  for (const Topology& topology : topologies()) {
    EXPECT_TRUE(nlohmann::json::accept(to_json(topology)));
  }
}

// The area that a <text> covers at most.
struct TextArea {
  std::string text;
  topo::Box box;
};

double number(const topo::XmlElement& element, const char* key) {
  return std::stod("0" + std::string(element.attribute(key)));
}

std::vector<TextArea> texts_of(const topo::XmlElement& svg, std::string_view source) {
  std::vector<TextArea> areas;
  std::size_t at = 0;
  for (const topo::XmlElement& element : svg.children) {
    if (element.name != "text") continue;
    at = source.find("<text ", at);
    const std::size_t begin = source.find('>', at) + 1;
    std::string text(source.substr(begin, source.find('<', begin) - begin));
    at = begin;
    for (const auto& [entity, character] :
         {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&amp;", "&"}}) {
      for (std::size_t i = 0; (i = text.find(entity, i)) != std::string::npos; ++i) {
        text.replace(i, std::string_view(entity).size(), character);
      }
    }
    const topo::Font font{number(element, "font-size"), element.attribute("font-weight") == "bold"};
    const double width = topo::text_width(text, font);
    const double x =
        number(element, "x") - (element.attribute("text-anchor") == "middle" ? width / 2 : 0);
    // Letters reach 0.78 of the size above the baseline and 0.24 below it.
    areas.push_back({text, {x, number(element, "y") - 0.78 * font.size, width, 1.02 * font.size}});
  }
  return areas;
}

TEST(RenderSvg, TextsDoNotOverlapAndStayInside) {
  for (const Topology& topology : topologies()) {
    const std::string svg = render_svg(topology);
    const Result<topo::XmlElement> root = topo::parse_xml(svg);
    ASSERT_TRUE(root.is_ok()) << root.status().message();
    EXPECT_EQ(root.value().name, "svg");
    const std::vector<TextArea> areas = texts_of(root.value(), svg);
    ASSERT_FALSE(areas.empty());
    for (std::size_t i = 0; i < areas.size(); ++i) {
      const topo::Box& a = areas[i].box;
      EXPECT_GE(a.x, 0) << areas[i].text;
      EXPECT_GE(a.y, 0) << areas[i].text;
      EXPECT_LE(a.right(), number(root.value(), "width")) << areas[i].text;
      EXPECT_LE(a.bottom(), number(root.value(), "height")) << areas[i].text;
      for (std::size_t k = 0; k < i; ++k) {
        const topo::Box& b = areas[k].box;
        const bool overlaps =
            a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
        EXPECT_FALSE(overlaps) << "'" << areas[i].text << "' and '" << areas[k].text << "'";
      }
    }
  }
}

TEST(RenderSvg, DrawsALinePerRailWithItsStateAndWidth) {
  const std::string svg = render_svg(parse_topology(R"(
host h[0-1]
  rail fast tcp plane 0 rate 10gbit measured
  rail slow tcp plane 1 rate 1gbit
  rail dark tcp plane 2
)")
                                         .value());
  const Result<topo::XmlElement> root = topo::parse_xml(svg);
  ASSERT_TRUE(root.is_ok());
  int measured = 0, nominal = 0, unknown = 0;
  for (const topo::XmlElement& element : root.value().children) {
    const bool is_rail = element.name == "line" && element.attribute("stroke").starts_with("#") &&
                         element.attribute("stroke") != "#ffffff" &&
                         element.attribute("x1") == element.attribute("x2");
    if (!is_rail) continue;
    const double width = number(element, "stroke-width");
    const std::string_view dashes = element.attribute("stroke-dasharray");
    measured += dashes.empty() && width == 10;
    nominal += dashes == "9 5" && width == 2;
    unknown += dashes == "2 4" && width == 2;
  }
  EXPECT_EQ(measured, 2);
  EXPECT_EQ(nominal, 2);
  EXPECT_EQ(unknown, 2);
}

TEST(Label, PrintableIsUtf8WithoutControls) {
  EXPECT_EQ(topo::printable("a\tb\x7f"), "a?b?");
  EXPECT_EQ(topo::printable("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(topo::printable("\xc3"), "?");
  EXPECT_EQ(topo::printable("\xc0\x80"), "??");            // overlong
  EXPECT_EQ(topo::printable("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(topo::printable("\xf4\x90\x80\x80"), "????");  // beyond Unicode
}

TEST(Label, ShortenedKeepsWholeCharacters) {
  EXPECT_EQ(topo::shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(topo::shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(topo::shortened("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4), "\xc3\xa9...");
  EXPECT_EQ(topo::shortened("abcdef", 2), "..");
}

TEST(Label, RangesOfRanks) {
  EXPECT_EQ(topo::ranges({}), "");
  EXPECT_EQ(topo::ranges({3}), "3");
  EXPECT_EQ(topo::ranges({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
}

}  // namespace
}  // namespace polyrail
