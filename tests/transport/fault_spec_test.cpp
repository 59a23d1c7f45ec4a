// The grammar of the option `fault`.
#include <gtest/gtest.h>

#include <random>

#include "transports/fault/fault.hpp"

namespace polyrail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(FaultSpec, ReadsEverySetting) {
  const auto spec = parse_fault_spec(
      "loopback:rate=100MB/s,burst=64KiB;loopback1:rate=25MB/s,delay=1ms,drop=0.01,"
      "duplicate=0.05,reorder=4,seed=7,down_after=10MB");
  ASSERT_TRUE(spec.is_ok()) << spec.status().message();
  FaultClause first;
  first.rails = "loopback";
  first.bytes_per_s = 100e6;
  first.burst_bytes = 65536;
  FaultClause second;
  second.rails = "loopback1";
  second.bytes_per_s = 25e6;
  second.delay = milliseconds(1);
  second.drop = 0.01;
  second.duplicate = 0.05;
  second.reorder = 4;
  second.seed = 7;
  second.down_after_bytes = 10'000'000;
  EXPECT_EQ(spec.value(), (FaultSpec{{first, second}}));
}

TEST(FaultSpec, KnowsUnits) {
  const auto rate = [](const std::string& text) {
    const auto spec = parse_fault_spec("x:rate=" + text);
    return spec.is_ok() ? spec.value().clauses[0].bytes_per_s : -1;
  };
  EXPECT_EQ(rate("800Mbit/s"), 100e6);
  EXPECT_EQ(rate("1.5GB/s"), 1.5e9);
  EXPECT_EQ(rate("1MiB/s"), 1048576);
  EXPECT_EQ(rate("7B/s"), 7);
  EXPECT_EQ(rate("100"), -1) << "a rate without a unit may mean bits or bytes";
  const auto delay = parse_fault_spec("x:delay=250us");
  ASSERT_TRUE(delay.is_ok());
  EXPECT_EQ(delay.value().clauses[0].delay, microseconds(250));
}

TEST(FaultSpec, EmptyTextHasNoClauses) {
  const auto spec = parse_fault_spec("");
  ASSERT_TRUE(spec.is_ok());
  EXPECT_TRUE(spec.value().clauses.empty());
}

TEST(FaultSpec, ErrorsNameTheWord) {
  const std::pair<const char*, const char*> kCases[] = {
      {"loopback:ratee=3MB/s", "'ratee=3MB/s'"},
      {"loopback:rate=3", "'rate=3'"},
      {"loopback:rate=0MB/s", "'rate=0MB/s'"},
      {"loopback:rate=-3MB/s", "'rate=-3MB/s'"},
      {"loopback:rate=1e400MB/s", "'rate=1e400MB/s'"},
      {"loopback:rate=nanMB/s", "'rate=nanMB/s'"},
      {"loopback:delay=3", "'delay=3'"},
      {"loopback:delay=2000000s", "'delay=2000000s'"},
      {"loopback:drop=1.01", "'drop=1.01'"},
      {"loopback:reorder=2.5", "'reorder=2.5'"},
      {"loopback:reorder=1000000", "'reorder=1000000'"},
      {"loopback:seed=-1", "'seed=-1'"},
      {"loopback:down_after=0", "'down_after=0'"},
      {"loopback:rate=1MB/s,,delay=1ms", "''"},
      {"a:delay=1ms;loopback", "'loopback'"},
      {"a:delay=1ms;:rate=1MB/s", "':rate=1MB/s'"},
  };
  for (const auto& [text, word] : kCases) {
    const auto spec = parse_fault_spec(text);
    ASSERT_FALSE(spec.is_ok()) << text;
    EXPECT_EQ(spec.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(spec.status().message().find(word), std::string::npos) << spec.status().message();
  }
}

TEST(FaultSpec, SurvivesMutations) {
  const std::string good =
      "loopback:rate=100MB/s,burst=64KiB;tcp*:delay=1ms,drop=0.01,duplicate=0.05,reorder=4,seed=7";
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 20000; ++round) {
    auto text = good;
    for (auto edits = random() % 4 + 1; edits > 0; --edits) {
      const auto at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        case 2:
          text.insert(at, good.substr(random() % good.size(), random() % 8));
          break;
        default:
          text.insert(at, 1, "0123456789.,;:=-eE*"[random() % 19]);
      }
      if (text.empty()) text = ":";
    }
    const auto spec = parse_fault_spec(text);
    if (!spec.is_ok()) {
      EXPECT_FALSE(spec.status().message().empty());
      continue;
    }
    for (const auto& clause : spec.value().clauses) {
      EXPECT_FALSE(clause.rails.empty());
      EXPECT_GE(clause.bytes_per_s, 0);
      EXPECT_GE(clause.delay.count(), 0);
      EXPECT_TRUE(clause.drop >= 0 && clause.drop <= 1) << text;
      EXPECT_TRUE(clause.reorder >= 0 && clause.reorder <= 64) << text;
    }
  }
}

TEST(FaultSpec, MatchesRailNamesByPattern) {
  const auto is_match = [](const char* pattern, const char* name) {
    FaultClause clause;
    clause.rails = pattern;
    return matches(clause, name);
  };
  EXPECT_TRUE(is_match("loopback", "loopback"));
  EXPECT_FALSE(is_match("loopback", "loopback1"));
  EXPECT_TRUE(is_match("loopback*", "loopback1"));
  EXPECT_TRUE(is_match("loopback?", "loopback1"));
  EXPECT_FALSE(is_match("loopback?", "loopback"));
  EXPECT_TRUE(is_match("*", ""));
  EXPECT_TRUE(is_match("*.ipv6", "eth0.ipv6"));
  EXPECT_FALSE(is_match("*.ipv6", "eth0.ipv4"));
  EXPECT_TRUE(is_match("*a*b*", "xxaxxabxx"));
  EXPECT_FALSE(is_match("*a*b", "xxaxxabxx"));
}

}  // namespace
}  // namespace polyrail
