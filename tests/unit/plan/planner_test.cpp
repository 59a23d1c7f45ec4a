// make_plan: which algorithm over which rails for which sizes, and how near to the limit.
#include "src/plan/planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "src/plan/check.hpp"
#include "topology/synthetic.hpp"

namespace polyrail {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Topology topology_of(const std::string& line) {
  Result<Topology> topology = parse_synthetic(line);
  EXPECT_TRUE(topology.is_ok()) << line << ": " << topology.status().message();
  return topology.value();
}

CollectiveSpec spec_of(const Topology& topology, std::uint64_t bytes, bool is_in_place = false) {
  CollectiveSpec spec;
  spec.rank_count = topology.rank_count();
  spec.count = bytes / size_bytes(spec.type);
  spec.is_in_place = is_in_place;
  return spec;
}

Plan plan_of(const std::string& line, std::uint64_t bytes, bool is_in_place = false) {
  const Topology topology = topology_of(line);
  Result<Plan> plan = make_plan(topology, spec_of(topology, bytes, is_in_place), {});
  EXPECT_TRUE(plan.is_ok()) << plan.status().message();
  EXPECT_TRUE(check(plan.value()).is_ok()) << check(plan.value()).message();
  return plan.value();
}

// By plane, the part of all bytes put that it carries.
std::map<int, double> shares(const Plan& plan) {
  std::map<int, double> bytes;
  double sum = 0;
  for (const Schedule& schedule : plan.schedules) {
    for (const Step& step : schedule.steps) {
      if (step.op != StepOp::kPut) continue;
      bytes[step.rail] += static_cast<double>(step.source.bytes);
      sum += static_cast<double>(step.source.bytes);
    }
  }
  for (auto& [plane, share] : bytes) share /= sum;
  return bytes;
}

std::vector<int> planes(const Plan& plan) {
  std::vector<int> used;
  for (const auto& [plane, share] : shares(plan)) used.push_back(plane);
  return used;
}

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

struct Expected {
  std::uint64_t bytes;
  std::string algorithm;
  std::vector<int> planes;
};

struct Case {
  std::string name;
  std::string topology;
  bool is_in_place;
  std::vector<Expected> expected;  // by size
};

class Choice : public ::testing::TestWithParam<Case> {};

TEST_P(Choice, IsTheExpectedOneForEachSize) {
  for (const Expected& expected : GetParam().expected) {
    const Plan plan = plan_of(GetParam().topology, expected.bytes, GetParam().is_in_place);
    EXPECT_EQ(plan.algorithm, expected.algorithm) << expected.bytes << " bytes";
    EXPECT_EQ(planes(plan), expected.planes) << expected.bytes << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Choice,
    ::testing::Values(
        Case{"TwoHostsThreeRails",
             "2 hosts, rails 1gbit+2.5gbit+500mbit 20us",
             false,
             {{8, "direct", {1}},
              {1 * kKiB, "direct", {1}},
              {64 * kKiB, "direct", {0, 1, 2}},
              {1 * kMiB, "direct", {0, 1, 2}},
              {256 * kMiB, "direct", {0, 1, 2}}}},
        Case{"TwoHostsLowestLatencyFirst",
             "2 hosts, rails 10gbit 50us 1gbit 10us",
             false,
             {{8, "direct", {1}}, {1 * kKiB, "direct", {1}}, {16 * kMiB, "direct", {0, 1}}}},
        Case{"TwoHostsInPlace",
             "2 hosts, rails 1gbit+2.5gbit 20us",
             true,
             {{8, "one_shot_staged", {1}},
              {1 * kMiB, "direct", {0, 1}},
              {256 * kMiB, "direct", {0, 1}}}},
        Case{"SlowRailOneTo32",
             "2 hosts, rails 800mbit+25mbit 20us",
             false,
             {{8, "direct", {0}},
              {4 * kKiB, "direct", {0}},
              {1 * kMiB, "direct", {0, 1}},
              {64 * kMiB, "direct", {0, 1}}}},
        Case{"FourHosts",
             "4 hosts, rails 1gbit+1gbit 20us",
             false,
             {{8, "one_shot", {0}}, {1 * kMiB, "ring", {0, 1}}, {64 * kMiB, "ring", {0, 1}}}},
        Case{"ManyHostsSmallMessages",
             "32 hosts, rails 10gbit 10us",
             false,
             {{8, "recursive_doubling", {0}}, {1 * kKiB, "recursive_doubling", {0}}}},
        Case{"SixteenHostsLarge", "16 hosts, rails 1gbit 20us", false, {{64 * kMiB, "ring", {0}}}},
        Case{"OneSlowHost",
             "4 hosts, rails 1gbit 20us, host 3 rails 600mbit 20us",
             false,
             {{8, "one_shot", {0}}, {16 * kMiB, "direct", {0}}, {256 * kMiB, "direct", {0}}}},
        Case{"OneHost",
             "1 hosts x 4 ranks, shm 8GBps 300ns",
             false,
             {{8, "one_shot", {0}}, {64 * kMiB, "ring", {0}}}},
        Case{"SeveralRanksPerHost",
             "2 hosts x 4 ranks, rails 1gbit+1gbit 20us, shm 8GBps 300ns",
             false,
             {{16 * kKiB, "two_level(direct)", {0, 1, 2}},
              {64 * kMiB, "two_level(direct)", {0, 1, 2}}}}),
    [](const ::testing::TestParamInfo<Case>& one) { return one.param.name; });

TEST(Planner, SendsFewerMessagesWhereTheyCostMore) {
  Topology topology = topology_of("4 hosts, rail 1gbit 10us");
  const auto algorithm = [&](double message_us) {
    for (Host& host : topology.hosts) host.rails.front().message_us = message_us;
    return make_plan(topology, spec_of(topology, 8), {}).value().algorithm;
  };
  EXPECT_EQ(algorithm(1), "one_shot");
  EXPECT_EQ(algorithm(5), "recursive_doubling") << "about as good, with fewer steps";
  EXPECT_EQ(algorithm(20), "recursive_doubling");
}

TEST(Planner, SharesFollowTheMeasuredRates) {
  const Plan plan = plan_of("2 hosts, rails 1gbit+2.5gbit+500mbit 20us", 64 * kMiB);
  const auto of = shares(plan);
  EXPECT_NEAR(of.at(0), 0.25, 0.0025);
  EXPECT_NEAR(of.at(1), 0.625, 0.00625);
  EXPECT_NEAR(of.at(2), 0.125, 0.00125);
  const auto slow = shares(plan_of("2 hosts, rails 800mbit+25mbit 20us", 64 * kMiB));
  EXPECT_NEAR(slow.at(1), 1.0 / 33, 0.01 / 33);
}

TEST(Planner, SharesAreEqualWithoutMeasurement) {
  const Topology topology = topology_of("2 hosts, rails 1gbit+2.5gbit 20us");
  PlanOptions options;
  options.split_by_measurement = false;
  const Plan plan = make_plan(topology, spec_of(topology, 64 * kMiB), options).value();
  EXPECT_NEAR(shares(plan).at(0), 0.5, 0.001);
}

TEST(Planner, ReachesTheLimitForLargeMessages) {
  for (const char* line :
       {"2 hosts, rails 4gbit+1gbit 20us", "2 hosts, rails 1gbit+2.5gbit+500mbit 20us",
        "2 hosts, rails 800mbit+200mbit 20us", "3 hosts, rails 1gbit 20us",
        "4 hosts, rails 500mbit+1250mbit+250mbit 20us", "5 hosts, rails 1gbit+1gbit 20us",
        "8 hosts, rails 10gbit 10us", "16 hosts, rails 1gbit+2gbit 20us",
        "2 hosts x 4 ranks, rails 1gbit+1gbit 20us, shm 8GBps 300ns",
        "3 hosts x 2 ranks, rails 1gbit+1gbit 20us, shm 8GBps 300ns"}) {
    for (const bool is_in_place : {false, true}) {
      for (const std::uint64_t bytes : {64 * kMiB, 256 * kMiB}) {
        const Plan plan = plan_of(line, bytes, is_in_place);
        EXPECT_GE(plan.predicted_us, plan.limit_us) << line << ", " << bytes << " bytes";
        EXPECT_LE(plan.predicted_us, 1.03 * plan.limit_us) << line << ", " << bytes << " bytes";
      }
    }
  }
}

// Where a ring gets the slow host's part of the rate only.
TEST(Planner, ReachesNearlyTheLimitOfUnequalHosts) {
  for (const char* slow : {"900mbit", "750mbit", "600mbit", "500mbit", "300mbit"}) {
    for (const int hosts : {3, 4, 8}) {
      const std::string line = std::to_string(hosts) + " hosts, rails 1gbit 20us, host " +
                               std::to_string(hosts - 1) + " rails " + slow + " 20us";
      const Plan plan = plan_of(line, 64 * kMiB);
      EXPECT_LE(plan.predicted_us, 1.06 * plan.limit_us) << line << ": " << plan.algorithm;
    }
  }
}

TEST(Planner, ReachesNearlyTheLimitOfManyUnequalHosts) {
  for (const int hosts : {16, 32}) {
    const std::string line =
        std::to_string(hosts) + " hosts, rails 1gbit 20us, host 3 rails 600mbit 20us";
    const Topology topology = topology_of(line);
    const Plan plan = make_plan(topology, spec_of(topology, 64 * kMiB), {}).value();
    EXPECT_LE(plan.predicted_us, 1.12 * plan.limit_us) << line << ": " << plan.algorithm;
  }
}

TEST(Planner, PlansForManyRanks) {
  for (const char* line : {"64 hosts, rails 10gbit+10gbit 10us",
                           "16 hosts x 8 ranks, rails 10gbit 10us, shm 8GBps 300ns"}) {
    for (const std::uint64_t bytes : {std::uint64_t{8}, 64 * kMiB}) {
      const Topology topology = topology_of(line);
      const Plan plan = make_plan(topology, spec_of(topology, bytes), {}).value();
      EXPECT_TRUE(check_shape(plan).is_ok());
      EXPECT_TRUE(check_values(plan).is_ok()) << check_values(plan).message();
      if (bytes < kMiB) continue;
      EXPECT_LE(plan.predicted_us, 1.1 * plan.limit_us) << plan.algorithm;
    }
  }
}

TEST(Planner, MakesTheSamePlanEachTime) {
  for (const std::uint64_t bytes : {8 * kKiB, 4 * kMiB}) {
    const char* line = "4 hosts x 2 ranks, rails 1gbit+1gbit 20us, shm 8GBps";
    EXPECT_EQ(plan_of(line, bytes), plan_of(line, bytes));
  }
}

TEST(Planner, PrefersTheFirstOfEqualRails) {
  EXPECT_EQ(planes(plan_of("2 hosts, rails 1gbit+1gbit+1gbit 20us", 8)), (std::vector<int>{0}));
}

TEST(Planner, UsesRailsWithoutCurves) {
  Topology topology = topology_of("2 hosts, rails 1gbit+1gbit");
  for (Host& host : topology.hosts) {
    for (Rail& rail : host.rails) rail.curve = {};
  }
  const Plan plan = make_plan(topology, spec_of(topology, 64 * kMiB), {}).value();
  EXPECT_EQ(planes(plan), (std::vector<int>{0, 1}));
}

TEST(Planner, MakesNoStepsForNoElements) {
  for (const char* line : {"1 hosts", "3 hosts, rails 1gbit", "2 hosts x 2 ranks, rails 1gbit"}) {
    const Topology topology = topology_of(line);
    const Plan plan = make_plan(topology, spec_of(topology, 0), {}).value();
    for (const Schedule& schedule : plan.schedules) EXPECT_TRUE(schedule.steps.empty());
  }
}

TEST(Planner, NeedsNoRailForOneRank) {
  const Topology topology = topology_of("1 hosts");
  EXPECT_EQ(make_plan(topology, spec_of(topology, 64), {}).value().schedules[0].steps.size(), 1U);
  EXPECT_TRUE(
      make_plan(topology, spec_of(topology, 64, true), {}).value().schedules[0].steps.empty());
}

TEST(Planner, FindsAWayWhereNoPlaneJoinsAll) {
  // Hosts 0 and 1 meet on plane 0 only, 1 and 2 on plane 1 only, 0 and 2 on plane 2 only.
  Topology topology = topology_of("3 hosts, rails 1gbit+1gbit+1gbit 20us");
  std::erase_if(topology.hosts[0].rails, [](const Rail& rail) { return rail.plane == 1; });
  std::erase_if(topology.hosts[1].rails, [](const Rail& rail) { return rail.plane == 2; });
  std::erase_if(topology.hosts[2].rails, [](const Rail& rail) { return rail.plane == 0; });
  const Result<Plan> plan = make_plan(topology, spec_of(topology, kMiB), {});
  ASSERT_TRUE(plan.is_ok()) << plan.status().message();
  EXPECT_TRUE(check(plan.value()).is_ok());
  EXPECT_EQ(planes(plan.value()), (std::vector<int>{0, 1, 2}));
}

// Hosts 0 and 1 have two rails, host 2 only one. Over the plane that joins all three they would get
// 3/4 of a rail's rate; the limit is the whole of host 2's.
TEST(Planner, UsesPlanesThatJoinOnlySomeHosts) {
  Topology topology = topology_of("3 hosts, rails 1gbit+1gbit 20us");
  std::erase_if(topology.hosts[2].rails, [](const Rail& rail) { return rail.plane == 1; });
  const CollectiveSpec spec = spec_of(topology, 64 * kMiB);
  const Plan plan = make_plan(topology, spec, {}).value();
  EXPECT_TRUE(check(plan).is_ok()) << check(plan).message();
  EXPECT_EQ(planes(plan), (std::vector<int>{0, 1}));
  EXPECT_LE(plan.predicted_us, 1.06 * plan.limit_us) << plan.algorithm;
}

// Host 3 has a bad second rail: the others use theirs among themselves.
TEST(Planner, PoolsTheRailsOfUnlikeHosts) {
  for (const char* line : {"4 hosts, rails 1gbit+1gbit 20us, host 3 rails 1gbit+10mbit 20us",
                           "4 hosts x 2 ranks, rails 1gbit+1gbit 20us, shm 8GBps 300ns, "
                           "host 3 rails 1gbit+10mbit 20us"}) {
    const Plan plan = plan_of(line, 64 * kMiB);
    EXPECT_LE(plan.predicted_us, 1.08 * plan.limit_us) << plan.algorithm;
  }
}

TEST(Planner, NamesRanksThatShareNoRail) {
  Topology topology = topology_of("3 hosts, rails 1gbit+1gbit 20us");
  std::erase_if(topology.hosts[0].rails, [](const Rail& rail) { return rail.plane == 1; });
  std::erase_if(topology.hosts[2].rails, [](const Rail& rail) { return rail.plane == 0; });
  const Result<Plan> plan = make_plan(topology, spec_of(topology, kMiB), {});
  ASSERT_FALSE(plan.is_ok());
  EXPECT_THAT(plan.status().message(), HasSubstr("rank 0"));
  EXPECT_THAT(plan.status().message(), HasSubstr("rank 2"));
}

TEST(Planner, RefusesWhatCannotBeRight) {
  const Topology topology = topology_of("2 hosts, rails 1gbit");
  CollectiveSpec spec = spec_of(topology, 64);
  spec.rank_count = 3;
  EXPECT_THAT(make_plan(topology, spec, {}).status().message(), HasSubstr("2 ranks"));
  spec = spec_of(topology, 64);
  spec.count = ~std::uint64_t{0} / 2;
  EXPECT_THAT(make_plan(topology, spec, {}).status().message(), HasSubstr("overflows"));
  PlanOptions options;
  options.algorithm = "carousel";
  EXPECT_THAT(make_plan(topology, spec_of(topology, 64), options).status().message(),
              HasSubstr("carousel"));
  options.algorithm = "two_level(ring)";
  const Topology one_host = topology_of("1 hosts x 2 ranks, shm 8GBps");
  EXPECT_THAT(make_plan(one_host, spec_of(one_host, 64), options).status().message(),
              HasSubstr("at least two hosts"));
}

TEST(Planner, TakesTheAlgorithmItIsTold) {
  const Topology topology = topology_of("2 hosts x 2 ranks, rails 1gbit 20us, shm 8GBps 300ns");
  for (const char* algorithm : {"one_shot", "direct", "ring", "recursive_doubling",
                                "halving_doubling", "tree", "two_level(ring)", "leaders(direct)"}) {
    PlanOptions options;
    options.algorithm = algorithm;
    const Result<Plan> plan = make_plan(topology, spec_of(topology, kMiB), options);
    ASSERT_TRUE(plan.is_ok()) << plan.status().message();
    EXPECT_EQ(plan.value().algorithm, algorithm);
    EXPECT_TRUE(check(plan.value()).is_ok());
  }
}

TEST(LimitUs, IsTheSmallerOfTheTwoBounds) {
  // Rates in bytes/us: 125 each; 1 MB.
  const auto limit = [](const std::string& line) {
    const Topology topology = topology_of(line);
    return limit_us(topology, spec_of(topology, 1'000'000));
  };
  EXPECT_NEAR(limit("2 hosts, rails 1gbit 20us"), 20 + 1e6 / 125, 1);
  EXPECT_NEAR(limit("4 hosts, rails 1gbit 20us"), 20 + 1e6 / 125 * 1.5, 1);
  EXPECT_NEAR(limit("4 hosts, rails 1gbit+1gbit 20us"), 20 + 1e6 / 250 * 1.5, 1);
  // The slow host's own bytes.
  EXPECT_NEAR(limit("4 hosts, rails 1gbit 20us, host 0 rails 100mbit 20us"), 20 + 1e6 / 12.5, 1);
  // The sum: 2 * 3 * S / (3 * 125 + 100).
  EXPECT_NEAR(limit("4 hosts, rails 1gbit 20us, host 0 rails 800mbit 20us"), 20 + 6e6 / 475, 1);
  // Ranks of a host share its rails.
  EXPECT_NEAR(limit("2 hosts x 4 ranks, rails 1gbit 20us, shm 8GBps 1us"), 20 + 1e6 / 125, 1);
  EXPECT_NEAR(limit("1 hosts x 4 ranks, shm 8GBps 1us"), 1 + 1.5e6 / 8000, 1);
}

}  // namespace
}  // namespace polyrail
