// simulate: times that can be worked out by hand.
#include "src/plan/simulate.hpp"

#include <gtest/gtest.h>

#include "src/plan/builder.hpp"
#include "src/plan/planner.hpp"
#include "tests/unit/plan/make.hpp"

namespace polyrail {
namespace {

using testing::make_equal;
using testing::make_spec;
using testing::make_topology;
using testing::RailSpec;

constexpr double kSlack = 0.02;  // local work and posting, which large messages hide

double simulated_us(const Topology& topology, const CollectiveSpec& spec,
                    const std::string& algorithm) {
  PlanOptions options;
  options.algorithm = algorithm;
  const Result<Plan> plan = make_plan(topology, spec, options);
  EXPECT_TRUE(plan.is_ok()) << plan.status().message();
  return simulate(plan.value(), topology).total_us;
}

TEST(Simulate, ExchangeOfTwoTakesOneMessage) {
  const Topology topology = make_equal(2, {{1000, 20}});  // 125 bytes/us
  const double us = simulated_us(topology, make_spec(2, 4'000'000), "direct");
  EXPECT_NEAR(us, 20 + 16e6 / 125, kSlack * us);
}

TEST(Simulate, RailsOfOnePlanDoNotSlowEachOther) {
  const Topology topology = make_equal(2, {{1000, 20}, {1000, 20}});
  const Result<Plan> plan = make_plan(topology, make_spec(2, 4'000'000), {});
  const Simulation simulation = simulate(plan.value(), topology);
  EXPECT_NEAR(simulation.total_us, 20 + 8e6 / 125, kSlack * simulation.total_us);
  ASSERT_EQ(simulation.rails.size(), 4U);
  for (const RailUse& rail : simulation.rails) {
    EXPECT_EQ(rail.bytes, 8'000'000U);
    EXPECT_NEAR(rail.busy_us, 8e6 / 125, 2);
  }
}

TEST(Simulate, RingIsBoundByTheSlowestHost) {
  const Topology topology =
      make_topology({1, 1, 1, 1}, {{{1000, 20}}, {{1000, 20}}, {{250, 20}}, {{1000, 20}}});
  const double us = simulated_us(topology, make_spec(4, 4'000'000), "ring");
  EXPECT_NEAR(us, 1.5 * 16e6 / (125 / 4.0), kSlack * us);
}

TEST(Simulate, RanksOfAHostShareItsNetworkRails) {
  const std::vector<RailSpec> rails = {{1000, 20}};
  const Topology apart = make_topology({1, 1, 1, 1}, {rails, rails, rails, rails});
  const Topology together = make_topology({2, 2}, {rails, rails});
  const CollectiveSpec spec = make_spec(4, 1'000'000);
  EXPECT_NEAR(simulated_us(together, spec, "one_shot"), 2 * simulated_us(apart, spec, "one_shot"),
              kSlack * simulated_us(together, spec, "one_shot"));
}

TEST(Simulate, RanksOfAHostDoNotShareHostLocalRails) {
  const std::vector<RailSpec> rails = {{8000, 1, RailKind::kShm}};
  const double two = simulated_us(make_topology({2}, {rails}), make_spec(2, 8'000'000), "ring");
  const double four = simulated_us(make_topology({4}, {rails}), make_spec(4, 8'000'000), "ring");
  EXPECT_NEAR(four / two, 1.5, 0.05);  // 2(n-1)/n: 1.5 against 1
}

TEST(Simulate, ManySendersShareOneReceiver) {
  PlanBuilder builder(make_spec(4, 1'000'000), 1);
  for (int from = 1; from < 4; ++from) {
    builder.transfer(from, 0, 0, {Space::kInput, 0, 4'000'000}, builder.allocate(0, 4'000'000), {});
  }
  const double us =
      simulate(std::move(builder).take("fan-in"), make_equal(4, {{1000, 20}})).total_us;
  EXPECT_NEAR(us, 20 + 3 * 4e6 / 125, kSlack * us);
}

TEST(Simulate, GivesPeersEqualTurns) {
  // Four long messages for rank 1 do not hold up the one for rank 2.
  PlanBuilder builder(make_spec(3, 1'000'000), 1);
  for (int i = 0; i < 4; ++i) {
    builder.transfer(0, 1, 0, {Space::kInput, 0, 4'000'000}, builder.allocate(1, 4'000'000), {});
  }
  builder.transfer(0, 2, 0, {Space::kInput, 0, 4'000'000}, builder.allocate(2, 4'000'000), {});
  const Simulation simulation =
      simulate(std::move(builder).take("fan-out"), make_equal(3, {{1000, 20}}));
  EXPECT_NEAR(simulation.rank_us[2], 20 + 2 * 4e6 / 125, kSlack * simulation.rank_us[2]);
  EXPECT_NEAR(simulation.rank_us[1], 20 + 5 * 4e6 / 125, kSlack * simulation.rank_us[1]);
}

TEST(Simulate, CountsLatenciesForTinyMessages) {
  const Topology topology = make_equal(8, {{1000, 100}});
  const CollectiveSpec spec = make_spec(8, 2);
  const auto between = [&](const std::string& algorithm, double least, double most) {
    const double us = simulated_us(topology, spec, algorithm);
    EXPECT_GE(us, least) << algorithm;
    EXPECT_LE(us, most) << algorithm;
  };
  between("one_shot", 100, 150);
  between("direct", 200, 300);
  between("recursive_doubling", 300, 350);
  between("halving_doubling", 600, 700);
  between("ring", 1400, 1500);
  between("tree", 600, 700);
}

TEST(Simulate, InPlaceResultsWaitForAcknowledgements) {
  const Topology topology = make_equal(2, {{1000, 100}});
  EXPECT_LT(simulated_us(topology, make_spec(2, 2, false), "one_shot"), 120);
  EXPECT_GT(simulated_us(topology, make_spec(2, 2, true), "one_shot"), 200);
  EXPECT_LT(simulated_us(topology, make_spec(2, 2, true), "one_shot_staged"), 120);
}

TEST(Simulate, UsesTheHostsCopyRate) {
  Topology topology = make_equal(1, {});
  topology.hosts[0].copy_bytes_per_s = 1e9;
  const Result<Plan> plan = make_plan(topology, make_spec(1, 1'000'000), {});
  EXPECT_NEAR(plan.value().predicted_us, 4000, 1);
  EXPECT_NEAR(plan.value().limit_us, 4000, 1);
}

TEST(Simulate, IsTheSameEachTime) {
  const Topology topology = make_equal(5, {{1000, 20}, {300, 25}});
  const Plan plan = make_plan(topology, make_spec(5, 100'000), {}).value();
  const Simulation first = simulate(plan, topology);
  const Simulation second = simulate(plan, topology);
  EXPECT_EQ(first.total_us, second.total_us);
  EXPECT_EQ(first.rank_us, second.rank_us);
}

}  // namespace
}  // namespace polyrail
