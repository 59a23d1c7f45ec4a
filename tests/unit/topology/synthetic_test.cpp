// One-line topologies: what the words mean, and where errors point.
#include "topology/synthetic.hpp"

#include <gtest/gtest.h>

#include "topology/text.hpp"

namespace polyrail {
namespace {

std::string text_of(std::string_view line) {
  const Result<Topology> result = parse_synthetic(line);
  EXPECT_TRUE(result.is_ok()) << result.status().message();
  return result.is_ok() ? to_text(result.value()) : "";
}

TEST(SyntheticTopology, RailsOfUnlikeRates) {
  EXPECT_EQ(text_of("2 hosts, rails 1gbit+2.5gbit + 500mbit"),
            "host h0\n"
            "  rail rail0 tcp plane 0 rate 1gbit latency 25us\n"
            "  rail rail1 tcp plane 1 rate 2.5gbit latency 25us\n"
            "  rail rail2 tcp plane 2 rate 500mbit latency 25us\n"
            "host h1\n"
            "  rail rail0 tcp plane 0 rate 1gbit latency 25us\n"
            "  rail rail1 tcp plane 1 rate 2.5gbit latency 25us\n"
            "  rail rail2 tcp plane 2 rate 500mbit latency 25us\n"
            "ranks 0 1\n");
}

TEST(SyntheticTopology, HostLocalRailsLieBehindTheNetwork) {
  EXPECT_EQ(text_of("1 host x 2 ranks, shm 10GBps, shm 1GBps, rails 1gbit 1gbit 30us"),
            "host h0\n"
            "  rail rail0 tcp plane 0 rate 1gbit latency 30us\n"
            "  rail rail1 tcp plane 1 rate 1gbit latency 30us\n"
            "  rail shm shm plane 2 rate 10GBps latency 0.5us\n"
            "  rail shm1 shm plane 3 rate 1GBps latency 0.5us\n"
            "ranks 0 0\n");
}

TEST(SyntheticTopology, ATimeBelongsToTheRatesInFrontOfIt) {
  EXPECT_EQ(text_of("1 host, rails 1gbit 10us + 2gbit 3gbit 20us 4gbit"),
            "host h0\n"
            "  rail rail0 tcp plane 0 rate 1gbit latency 10us\n"
            "  rail rail1 tcp plane 1 rate 2gbit latency 20us\n"
            "  rail rail2 tcp plane 2 rate 3gbit latency 20us\n"
            "  rail rail3 tcp plane 3 rate 4gbit latency 25us\n"
            "ranks 0\n");
}

TEST(SyntheticTopology, OneHostMayDiffer) {
  EXPECT_EQ(
      text_of("3 hosts, rails 400mbit, shm 9GBps, hosts 1-1 2 rails 200mbit, host 2 shm 1GBps"),
      "host h0\n"
      "  rail rail0 tcp plane 0 rate 400mbit latency 25us\n"
      "  rail shm shm plane 2 rate 9GBps latency 0.5us\n"
      "host h1\n"
      "  rail rail0 tcp plane 0 rate 200mbit latency 25us\n"
      "  rail rail1 tcp plane 1 rate 200mbit latency 25us\n"
      "  rail shm shm plane 2 rate 9GBps latency 0.5us\n"
      "host h2\n"
      "  rail rail0 tcp plane 0 rate 400mbit latency 25us\n"
      "  rail shm shm plane 2 rate 1GBps latency 0.5us\n"
      "ranks 0 1 2\n");
}

TEST(SyntheticTopology, GpusAndRailsAreSpreadOverNumaNodes) {
  const Result<Topology> result = parse_synthetic(
      "2 hosts x 8 gpus, 96 cores, 2 numa, 2 packages, cuda_ipc 450GBps, 4 verbs 50GBps, 1 tcp "
      "3GBps");
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  const Topology& topology = result.value();
  EXPECT_EQ(topology.rank_count(), 16);
  EXPECT_EQ(topology.plane_count(), 6);
  const Host& host = topology.hosts[1];
  EXPECT_EQ(host.core_count, 96);
  EXPECT_EQ(host.package_count, 2);
  ASSERT_EQ(host.gpus.size(), 8U);
  EXPECT_EQ(host.gpus[3], (Gpu{"gpu3", "", 0}));
  EXPECT_EQ(host.gpus[4], (Gpu{"gpu4", "", 1}));
  ASSERT_EQ(host.rails.size(), 6U);
  EXPECT_EQ(host.rails[0].kind, RailKind::kVerbs);
  EXPECT_EQ(host.rails[0].numa, 0);
  EXPECT_EQ(host.rails[4].kind, RailKind::kTcp);
  EXPECT_EQ(host.rails[3].numa, 1);
  EXPECT_EQ(host.rails[4].numa, 0);
  EXPECT_EQ(host.rails[5].name, "cuda_ipc");
  EXPECT_EQ(host.rails[5].numa, -1);
}

TEST(SyntheticTopology, HostsWithoutRailsAreLegal) {
  EXPECT_EQ(text_of("2 hosts"), "host h0\nhost h1\nranks 0 1\n");
}

TEST(SyntheticTopology, ErrorsPointAtTheCharacter) {
  const struct {
    const char* line;
    const char* message;
  } cases[] = {
      {"", "character 1: expected a number of hosts from 1 to 65536, found the end"},
      {"0 hosts", "character 1: expected a number of hosts"},
      {"70000 hosts", "character 1: expected a number of hosts"},
      {"2 rails", "character 3: expected 'hosts', found 'rails'"},
      {"2 hosts x", "character 10: expected a number of ranks or GPUs"},
      {"2 hosts x 9999999 ranks", "from 1 to 524288, found '9999999'"},
      {"2 hosts x 2 cpus", "character 13: expected 'ranks' or 'gpus', found 'cpus'"},
      {"2 hosts rails 1gbit", "character 9: expected ',' or the end, found 'rails'"},
      {"2 hosts,", "expected 'rails' or a kind of rail: tcp"},
      {"2 hosts, 3", "expected 'rails', a kind of rail, 'cores'"},
      {"2 hosts, udp 1gbit", "character 10: expected 'rails' or a kind of rail"},
      {"2 hosts, rails", "expected a rate such as 2.5gbit"},
      {"2 hosts, rails 25us", "character 16: expected a rate such as"},
      {"2 hosts, rails 1gbit +", "character 23: expected a rate such as"},
      {"2 hosts, rails 1gbit + 25us", "character 24: expected a rate such as"},
      {"2 hosts, rails 1gbit 1Gbps", "found '1Gbps'"},
      {"2 hosts, rails 1gbit 1us 2us", "found '2us'"},
      {"2 hosts, host 2 rails 1gbit", "a range of hosts from 0 to 1 such as 0 or 0-1, found '2'"},
      {"2 hosts, hosts 1-0 rails 1gbit", "found '1-0'"},
      {"2 hosts, 99999 rails 1gbit", "expected fewer rails"},
      {"65536 hosts, 4096 rails 1gbit", "expected fewer rails"},
      {"65536 hosts x 16 gpus", "expected fewer GPUs in all"},
  };
  for (const auto& test : cases) {
    const Result<Topology> result = parse_synthetic(test.line);
    ASSERT_FALSE(result.is_ok()) << test.line;
    EXPECT_NE(result.status().message().find(test.message), std::string::npos)
        << test.line << "\n  " << result.status().message();
  }
}

TEST(SyntheticTopology, SurvivesTheTextRoundTrip) {
  const Result<Topology> topology =
      parse_synthetic("4 hosts x 8 gpus, 2 numa, 8 verbs 400gbit 2us, tcp 3GBps, cuda_ipc 450GBps");
  ASSERT_TRUE(topology.is_ok());
  const Result<Topology> back = parse_topology(to_text(topology.value()));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back.value(), topology.value());
}

}  // namespace
}  // namespace polyrail
