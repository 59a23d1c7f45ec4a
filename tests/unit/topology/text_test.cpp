// The .topo format: what it reads, what it prints, and what its errors say.
#include "topology/text.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "topology/label.hpp"
#include "topology/units.hpp"

namespace polyrail {
namespace {

Host bare_host(std::string name) {
  Host host;
  host.name = std::move(name);
  return host;
}

Topology parsed(std::string_view text) {
  Result<Topology> result = parse_topology(text);
  EXPECT_TRUE(result.is_ok()) << result.status().message();
  return result.is_ok() ? std::move(result).value() : Topology();
}

std::string error_of(std::string_view text) {
  const Result<Topology> result = parse_topology(text);
  EXPECT_FALSE(result.is_ok()) << text;
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  return result.status().message();
}

TEST(TopologyText, ReadsEveryField) {
  const Topology topology = parsed(R"(# a comment
host h0 packages 2 numa 4 cores 64 copy 9.5GBps   # another
  gpu gpu0 pci 0000:07:00.0 numa 3
  rail eth0 tcp plane 0 device enp3s0 address 10.0.0.1 numa 1 pci 0000:03:00.0 rate 1gbit latency 25us message 3.5us measured
  rail shm shm plane 3 curve 0:0.3us 64KiB:12us 1048576:0.2ms
host h1
ranks 0 0 1
epoch 18446744073709551615
)");
  ASSERT_EQ(topology.hosts.size(), 2U);
  const Host& host = topology.hosts[0];
  EXPECT_EQ(host.name, "h0");
  EXPECT_EQ(host.package_count, 2);
  EXPECT_EQ(host.numa_count, 4);
  EXPECT_EQ(host.core_count, 64);
  EXPECT_EQ(host.copy_bytes_per_s, 9.5e9);
  EXPECT_EQ(host.gpus, (std::vector<Gpu>{{"gpu0", "0000:07:00.0", 3}}));
  const Rail eth0{"eth0",
                  RailKind::kTcp,
                  "enp3s0",
                  "10.0.0.1",
                  0,
                  1,
                  "0000:03:00.0",
                  Provenance::kMeasured,
                  CostCurve::linear(25, 125e6),
                  3.5};
  const Rail shm{"shm",
                 RailKind::kShm,
                 "",
                 "",
                 3,
                 -1,
                 "",
                 Provenance::kNominal,
                 {{{0, 0.3}, {65536, 12}, {1048576, 200}}},
                 0};
  EXPECT_EQ(host.rails, (std::vector<Rail>{eth0, shm}));
  EXPECT_EQ(topology.hosts[1], bare_host("h1"));
  EXPECT_EQ(topology.rank_hosts, (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(topology.epoch, UINT64_MAX);
}

TEST(TopologyText, RepeatsLinesAndStepsWithTheHost) {
  const Topology topology = parsed(
      "host node[08-10] numa 1\n"
      " gpu gpu[0-3] pci 0000:[10-13]:00.0\n"
      " rail eth[0-1] tcp plane [4-5] address 10.[1-2].0.{21-23} rate 1gbit\n"
      "ranks each 2\n");
  ASSERT_EQ(topology.hosts.size(), 3U);
  EXPECT_EQ(topology.hosts[0].name, "node08");
  EXPECT_EQ(topology.hosts[2].name, "node10");
  ASSERT_EQ(topology.hosts[1].gpus.size(), 4U);
  EXPECT_EQ(topology.hosts[1].gpus[3], (Gpu{"gpu3", "0000:13:00.0", -1}));
  ASSERT_EQ(topology.hosts[2].rails.size(), 2U);
  EXPECT_EQ(topology.hosts[2].rails[0].address, "10.1.0.23");
  EXPECT_EQ(topology.hosts[2].rails[1].address, "10.2.0.23");
  EXPECT_EQ(topology.hosts[2].rails[1].plane, 5);
  EXPECT_EQ(topology.rank_hosts, (std::vector<int>{0, 0, 1, 1, 2, 2}));
}

TEST(TopologyText, ReadsRunsOfRanks) {
  EXPECT_EQ(parsed("host a\nhost b\nranks 0*3 1\nranks 0").rank_hosts,
            (std::vector<int>{0, 0, 0, 1, 0}));
}

TEST(TopologyText, QuotedWordsHoldAnything) {
  const Topology topology = parsed(
      "host \"a \\\"b\\\" #[0-1]\"\n"
      " gpu \"Tesla \\x56100\\n\"\n"
      " rail \"\" tcp device x\\y\n");
  ASSERT_EQ(topology.hosts.size(), 1U);
  EXPECT_EQ(topology.hosts[0].name, "a \"b\" #[0-1]");
  EXPECT_EQ(topology.hosts[0].gpus[0].name, "Tesla V100\n");
  EXPECT_EQ(topology.hosts[0].rails[0].name, "");
  EXPECT_EQ(topology.hosts[0].rails[0].device, "x\\y");
}

TEST(TopologyText, NothingIsAnEmptyTopology) {
  EXPECT_EQ(parsed(""), Topology());
  EXPECT_EQ(parsed("\n # only a comment\r\n\n"), Topology());
  EXPECT_EQ(to_text(Topology()), "");
}

TEST(TopologyText, PrintsWhatAPersonWouldWrite) {
  const std::string text =
      "host h0 packages 1 numa 1 cores 2 copy 9GBps\n"
      "  gpu \"Tesla V100\" pci 0000:07:00.0 numa 0\n"
      "  rail rail0 tcp plane 0 device eth0 address 10.0.0.1 rate 2.5gbit latency 25us measured\n"
      "  rail shm shm plane 1 curve 0:0.3us 65536:12us\n"
      "  rail unknown verbs device mlx5_0 pci 0000:41:00.0 numa 1\n"
      "host h1\n"
      "ranks 0*4 1 1\n"
      "epoch 3\n";
  EXPECT_EQ(to_text(parsed(text)), text);
}

TEST(TopologyText, LongRankListsAreBroken) {
  Topology topology;
  topology.hosts = {bare_host("a"), bare_host("b")};
  for (int i = 0; i < 500; ++i) topology.rank_hosts.push_back(i % 2);
  const std::string text = to_text(topology);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 100U);
    at = end + 1;
  }
  EXPECT_EQ(parsed(text), topology);
}

// Any value the parser would accept, with awkward names and numbers.
Topology random_topology(std::mt19937& random) {
  const auto below = [&](int bound) { return static_cast<int>(random() % bound); };
  const auto text = [&](const char* prefix, int index) {
    static const char kLetters[] = "ab0-:./%@\"\\#[]{} \t\n\x01\x7f\xc3\xa9";
    std::string value = prefix + std::to_string(index);
    for (int i = below(4); i > 0; --i) value += kLetters[below(sizeof(kLetters) - 1)];
    return value;
  };
  const auto real = [&] { return std::exp(below(3000) / 100.0) * (1 + below(1000) / 7.0); };
  Topology topology;
  for (int h = below(4); h >= 0; --h) {
    Host host;
    host.name = text("h", h);
    host.package_count = below(3);
    host.numa_count = below(3);
    host.core_count = below(200);
    host.copy_bytes_per_s = below(2) * real();
    for (int g = below(3); g > 0; --g)
      host.gpus.push_back({text("", g), text("", g), below(4) - 1});
    for (int r = below(5); r > 0; --r) {
      Rail rail{text("r", r),
                static_cast<RailKind>(below(6)),
                text("", 0),
                text("", 1),
                below(2) ? r : -1,
                below(3) - 1,
                below(2) ? text("", 2) : "",
                static_cast<Provenance>(below(2)),
                {},
                below(2) * real() / 1e3};
      switch (below(4)) {
        case 0:
          break;
        case 1:
          rail.curve = CostCurve::linear(below(2) * real() / 1e6, real());
          break;
        case 2:
          rail.curve = CostCurve::linear(25, *parse_rate("700mbit"));
          break;
        default: {
          CostCurve::Point point{static_cast<std::uint64_t>(below(2)), below(2) * real() / 1e3};
          for (int p = below(5); p >= 0; --p) {
            rail.curve.points.push_back(point);
            point.bytes += 1 + random() * static_cast<std::uint64_t>(1 + below(3));
            point.time_us += below(2) * real() / 1e3;
          }
        }
      }
      host.rails.push_back(std::move(rail));
    }
    topology.hosts.push_back(std::move(host));
  }
  for (int i = below(20); i > 0; --i) {
    topology.rank_hosts.push_back(below(3) && !topology.rank_hosts.empty()
                                      ? topology.rank_hosts.back()
                                      : below(static_cast<int>(topology.hosts.size())));
  }
  topology.epoch = random() * static_cast<std::uint64_t>(below(2)) << 32;
  return topology;
}

TEST(TopologyText, RandomTopologiesSurviveTheRoundTrip) {
  std::mt19937 random(20240208);
  for (int round = 0; round < 2000; ++round) {
    const Topology topology = random_topology(random);
    const std::string text = to_text(topology);
    const Result<Topology> back = parse_topology(text);
    ASSERT_TRUE(back.is_ok()) << back.status().message() << "\n" << text;
    ASSERT_EQ(back.value(), topology) << "round " << round << "\n" << text;
    ASSERT_EQ(to_text(back.value()), text);
  }
}

TEST(TopologyText, ErrorsNameTheLineAndWhatWasExpected) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"\nhots h0", "line 2: expected host, rail, gpu, ranks or epoch, found hots"},
      {"rail r tcp",
       "line 1: expected host, rail, gpu, ranks or epoch, found rail before any host"},
      {"host", "line 1: expected the name of a host, found the end of the line"},
      {"host h cores", "expected cores as a number from 0 to 1048576, found the end of the line"},
      {"host h cores -1", "expected cores as a number from 0 to 1048576, found -1"},
      {"host h cores 1 cores 2", "line 1: expected 'cores' at most once in a line"},
      {"host h core 1", "expected packages, numa, cores or copy, found core"},
      {"host h copy fast", "expected a rate such as 2.5gbit"},
      {"host a\nhost a", "line 2: expected a name that no other host has, found a"},
      {"host h\n\nrail r", "line 3: expected a kind of rail"},
      {"host h\nrail r udp", "found udp"},
      {"host h\nrail r tcp rate 1gbps", "expected a rate such as 2.5gbit, 500mbit, 10GBps"},
      {"host h\nrail r tcp rate 1gbit latency 5", "expected a time such as 300ns, 25us"},
      {"host h\nrail r tcp latency 5us", "expected a rate beside the latency"},
      {"host h\nrail r tcp rate 1gbit curve 0:1us", "expected either a rate or a curve"},
      {"host h\nrail r tcp measured nominal", "at most once"},
      {"host h\nrail r tcp curve", "expected points such as 0:0.3us 64KiB:12us"},
      {"host h\nrail r tcp curve 0:1us 0:2us", "found 0:2us"},
      {"host h\nrail r tcp curve 0:2us 1:1us", "found 1:1us"},
      {"host h\nrail r tcp curve 1:", "found 1:"},
      {"host h\nrail r tcp curve 99999999999GiB:1us", "found 99999999999GiB:1us"},
      {"host h\nrail r tcp\nrail r shm", "line 3: expected a name that no other rail"},
      {"host h\nrail r tcp plane 1\nrail s shm plane 1", "line 3: expected a plane that no other"},
      {"host h\nranks 1", "expected 'each' or hosts from 0 to 0"},
      {"host h\nranks 0*99999999", "found 0*99999999"},
      {"host h\nranks each 2 3", "expected the end of the line"},
      {"host h\nranks", "found the end of the line"},
      {"ranks 0", "line 1: expected hosts before their ranks"},
      {"epoch x", "line 1: expected a number, found x"},
      {"epoch 1\nepoch 2", "line 2: expected one epoch"},
      {"host \"h", "line 1: expected a closing quote"},
      {"host \"h\"x", "line 1: expected a space after the closing quote"},
      {"host \"\\q\"", "expected \\\" \\\\"},
      {"host h[3-1]", "line 1: expected a range of at most 65536"},
      {"host h[0-99999999]", "expected a range of at most 65536"},
      {"host h[0-1", "expected a range"},
      {"host h[0-1]\nrail r[0-2] tcp plane [0-1]", "line 2: expected a range of 3 in '[0-1]'"},
      {"host h[0-1]\nrail r tcp address {0-2}", "as the name of its host has"},
      {"host h\nrail fe80::1[eth0] tcp", "needs quotes"},
  };
  for (const auto& test : cases) {
    const std::string message = error_of(test.text);
    EXPECT_TRUE(message.starts_with("line ")) << message;
    EXPECT_NE(message.find(test.message), std::string::npos) << test.text << "\n  " << message;
  }
}

TEST(TopologyText, SmallTextsCannotMakeLargeTopologies) {
  EXPECT_NE(error_of("host h[0-65535]\nrail r[0-65535] tcp\n").find("at most 64 MiB"),
            std::string::npos);
  EXPECT_NE(error_of("host h[0-65535]\ngpu g[0-65535]\n").find("at most 64 MiB"),
            std::string::npos);
  EXPECT_NE(error_of("host h[0-65535]\nranks each 1000000\n").find("at most 1048576 ranks"),
            std::string::npos);
  EXPECT_NE(error_of("host " + std::string(100000, 'x')).find("at most 255 bytes"),
            std::string::npos);
  EXPECT_LT(error_of("host h\nranks " + std::string(100000, 'x')).size(), 500U);
  for (const char* text : {"\xff\x1b[2J", "host h \xc3\x28", "host \"\x9b\" cores \x80"}) {
    const std::string message = error_of(text);
    EXPECT_EQ(message, topo::printable(message));
  }
}

}  // namespace
}  // namespace polyrail
