// polyrail-topo, run as a program: inputs, outputs, and what it says about mistakes.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "topology/text.hpp"
#include "topology/xml.hpp"

namespace polyrail {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string output;  // standard output and error
};

// `arguments` is shell text.
Outcome run_tool(const std::string& arguments) {
  const std::string command = "'" POLYRAIL_TOPO_TOOL "' " + arguments + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  for (std::size_t count; (count = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.output.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  return outcome;
}

std::string data(const std::string& name) {
  return "'" POLYRAIL_TEST_DATA "/" + name + "'";
}

TEST(PolyrailTopo, PrintsTheTreeOfATopoFile) {
  const Outcome outcome = run_tool(data("unlike_rails.topo"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output,
            "2 hosts, 4 ranks, 4 planes, epoch 7\n"
            "├─ h0: ranks 0-1; 1 package, 1 NUMA node, 2 cores, copies 9.5 GB/s\n"
            "│  ├─ rail0  tcp  plane 0  1 Gbit/s    25 us   measured  eth0 10.77.0.1\n"
            "│  ├─ rail1  tcp  plane 1  2.5 Gbit/s  30 us   measured  eth1 10.77.1.1\n"
            "│  ├─ rail2  tcp  plane 2  500 Mbit/s  100 us  nominal   eth2 10.77.2.1\n"
            "│  └─ shm    shm  plane 3  7.12 GB/s   300 ns  nominal\n"
            "└─ h1: ranks 2-3; 1 package, 1 NUMA node, 2 cores, copies 9.5 GB/s\n"
            "   ├─ rail0  tcp  plane 0  1 Gbit/s    25 us   measured  eth0 10.77.0.2\n"
            "   ├─ rail1  tcp  plane 1  2.5 Gbit/s  30 us   measured  eth1 10.77.1.2\n"
            "   ├─ rail2  tcp  plane 2  500 Mbit/s  100 us  nominal   eth2 10.77.2.2\n"
            "   └─ shm    shm  plane 3  7.12 GB/s   300 ns  nominal\n");
}

TEST(PolyrailTopo, ReadsHwlocXml) {
  const Outcome outcome = run_tool(data("machine.xml"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output,
            "1 host, 0 ranks, 3 planes\n"
            "└─ made&up: 2 packages, 2 NUMA nodes, 4 cores\n"
            "   ├─ NUMA node 0\n"
            "   │  ├─ eth0  tcp    plane 0  -  -    0000:01:00.0\n"
            "   │  └─ eth1  tcp    plane 1  -  -    0000:01:00.0\n"
            "   └─ NUMA node 1\n"
            "      ├─ GPU Tesla V100-PCIE-16GB  0000:81:00.0\n"
            "      └─ ib0   verbs  plane 2  -  -    0000:82:00.0\n");
}

TEST(PolyrailTopo, ReadsStandardInputAndPrintsText) {
  const Outcome outcome = run_tool("- --text < " + data("unlike_rails.topo"));
  EXPECT_EQ(outcome.exit_code, 0);
  const Result<Topology> topology = parse_topology(outcome.output);
  ASSERT_TRUE(topology.is_ok()) << topology.status().message();
  EXPECT_EQ(topology.value().epoch, 7U);
  EXPECT_EQ(topology.value().hosts.size(), 2U);
}

TEST(PolyrailTopo, PrintsJsonOfASyntheticTopology) {
  const Outcome outcome = run_tool("--synthetic '2 hosts, rails 1gbit+500mbit' --json");
  EXPECT_EQ(outcome.exit_code, 0);
  const nlohmann::json json = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(json["hosts"][1]["rails"][0]["bytes_per_s"], 125e6);
}

TEST(PolyrailTopo, WritesAPictureBesideTheTree) {
  std::string pattern = (std::filesystem::temp_directory_path() / "polyrail-topo-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::string path = pattern + "/picture.svg";
  const Outcome outcome = run_tool(data("unlike_rails.topo") + " --svg '" + path + "'");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.output.starts_with("2 hosts, 4 ranks")) << outcome.output;
  std::ifstream file(path);
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(topo::parse_xml(svg).is_ok());
  EXPECT_EQ(run_tool(data("unlike_rails.topo") + " --svg -").output, svg);
  std::filesystem::remove_all(pattern);
}

TEST(PolyrailTopo, ShowsThisMachine) {
  const Outcome outcome = run_tool("--json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  const nlohmann::json json = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(json["hosts"].size(), 1U);
  EXPECT_GE(json["hosts"][0]["cores"], 1);
  for (const nlohmann::json& rail : json["hosts"][0]["rails"]) {
    EXPECT_TRUE(rail["plane"].is_null());
    EXPECT_EQ(rail["provenance"], "nominal");
  }
}

TEST(PolyrailTopo, ExplainsMistakesWithStatusTwo) {
  const struct {
    std::string arguments;
    const char* message;
  } cases[] = {
      {"/nonexistent.topo", "polyrail-topo: /nonexistent.topo: No such file or directory"},
      {"/", "polyrail-topo: /: Is a directory"},
      {data("bad.topo"), "bad.topo: line 3: expected a rate such as 2.5gbit"},
      {"--synthetic '2 horses'", "character 3: expected 'hosts', found 'horses'"},
      {"--svg /nonexistent/x.svg --synthetic '1 host'",
       "polyrail-topo: write /nonexistent/x.svg: No such file or directory"},
      {"--json --text", "excludes"},
      {"x.topo --synthetic '1 host'", "excludes"},
      {"--wrong", "--wrong"},
      {"- < /dev/null --nothing", "--nothing"},
      {"--synthetic '1 host' > /dev/full", ""},
  };
  for (const auto& test : cases) {
    const Outcome outcome = run_tool(test.arguments);
    EXPECT_EQ(outcome.exit_code, 2) << test.arguments;
    EXPECT_NE(outcome.output.find(test.message), std::string::npos) << outcome.output;
  }
}

TEST(PolyrailTopo, HelpsWithStatusZero) {
  const Outcome outcome = run_tool("--help");
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* word : {"--svg", "--json", "--text", "--synthetic", "FILE", "Examples"}) {
    EXPECT_NE(outcome.output.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace polyrail
