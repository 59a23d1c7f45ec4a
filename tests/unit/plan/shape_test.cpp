// check_shape: what the planner makes passes, what is broken by hand does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/plan/planner.hpp"
#include "tests/unit/plan/make.hpp"

namespace polyrail {
namespace {

using ::testing::HasSubstr;
using testing::make_equal;
using testing::make_spec;

Plan made(int rank_count, std::uint64_t count, bool is_in_place = false) {
  const Topology topology = make_equal(rank_count, {{1000, 20}, {250, 40}});
  Result<Plan> plan = make_plan(topology, make_spec(rank_count, count, is_in_place), {});
  EXPECT_TRUE(plan.is_ok()) << plan.status().message();
  return plan.value();
}

TEST(CheckShape, AcceptsWhatThePlannerMakes) {
  for (int rank_count = 1; rank_count <= 9; ++rank_count) {
    for (const std::uint64_t count : {0U, 1U, 2U, 7U, 1000U, 99991U, 4194304U}) {
      for (const bool is_in_place : {false, true}) {
        const Status status = check_shape(made(rank_count, count, is_in_place));
        EXPECT_TRUE(status.is_ok())
            << rank_count << " ranks, " << count << ": " << status.message();
      }
    }
  }
}

TEST(CheckShape, MakesNoStepsForNoElements) {
  for (const Schedule& schedule : made(4, 0).schedules) EXPECT_TRUE(schedule.steps.empty());
}

// Each case breaks one promise of a good plan.
struct Break {
  const char* name;
  void (*apply)(Plan&);
  const char* message;
};

class BrokenPlan : public ::testing::TestWithParam<Break> {};

TEST_P(BrokenPlan, IsRefused) {
  Plan plan = made(3, 100000);
  ASSERT_EQ(plan.schedules[0].steps[0].op, StepOp::kPut);
  GetParam().apply(plan);
  const Status status = check_shape(plan);
  ASSERT_FALSE(status.is_ok());
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

Step& first(Plan& plan, StepOp op) {
  for (Step& step : plan.schedules[0].steps) {
    if (step.op == op) return step;
  }
  ADD_FAILURE() << "no such step";
  return plan.schedules[0].steps.front();
}

INSTANTIATE_TEST_SUITE_P(
    Each, BrokenPlan,
    ::testing::Values(
        Break{"ScheduleMissing", [](Plan& p) { p.schedules.pop_back(); }, "2 schedules for 3"},
        Break{"CountOverflows", [](Plan& p) { p.spec.count = ~std::uint64_t{0}; }, "overflows"},
        Break{"PeerIsSelf", [](Plan& p) { first(p, StepOp::kPut).peer = 0; }, "peer 0"},
        Break{"PeerOutOfRange", [](Plan& p) { first(p, StepOp::kPut).peer = 3; }, "peer 3"},
        Break{"RailOutOfRange", [](Plan& p) { first(p, StepOp::kPut).rail = 2; }, "rail 2"},
        Break{"SourceOutside", [](Plan& p) { first(p, StepOp::kPut).source.offset_bytes = 399996; },
              "source ends outside"},
        Break{"OffsetWraps",
              [](Plan& p) { first(p, StepOp::kPut).source.offset_bytes = ~std::uint64_t{3}; },
              "source ends outside"},
        Break{"HalfElement", [](Plan& p) { first(p, StepOp::kPut).source.offset_bytes += 2; },
              "whole elements"},
        Break{"WritesInput",
              [](Plan& p) { first(p, StepOp::kReduce).target.space = Space::kInput; },
              "target lies in the input"},
        Break{"SizesDiffer", [](Plan& p) { first(p, StepOp::kReduce).operand.bytes -= 4; },
              "operand and target differ"},
        Break{"PutIsFinal", [](Plan& p) { first(p, StepOp::kPut).is_final = true; }, "final"},
        Break{"PutHasOperand", [](Plan& p) { first(p, StepOp::kPut).operand.bytes = 4; },
              "operand"},
        Break{"ReduceHasPeer", [](Plan& p) { first(p, StepOp::kReduce).peer = 1; }, "names a peer"},
        Break{"AfterIsLater", [](Plan& p) { first(p, StepOp::kPut).after = {0}; }, "not earlier"},
        Break{"AfterNotAscending",
              [](Plan& p) {
                first(p, StepOp::kReduce).after = {1, 0};
              },
              "not ascending"},
        Break{"WaitTwice",
              [](Plan& p) {
                Step& wait = first(p, StepOp::kWait);
                for (Step& step : p.schedules[0].steps) {
                  if (step.op == StepOp::kWait) step.signal = wait.signal;
                }
              },
              "another wait"},
        Break{"SignalTooLarge", [](Plan& p) { first(p, StepOp::kWait).signal = kMostSignals; },
              "too large"},
        Break{"NobodyWaits", [](Plan& p) { first(p, StepOp::kPut).signal = 1000; }, "nobody waits"},
        Break{"PutTwice",
              [](Plan& p) {
                const Step put = first(p, StepOp::kPut);
                p.schedules[0].steps.push_back(put);
              },
              "another put"},
        Break{"PutMissing",
              [](Plan& p) {
                Step& put = first(p, StepOp::kPut);
                Step copy;
                copy.op = StepOp::kCopy;
                copy.source = put.source;
                copy.target = {Space::kOutput, put.source.offset_bytes, put.source.bytes};
                put = copy;
              },
              "no put raises"},
        Break{"PutToAnotherPlace",
              [](Plan& p) {
                Step& put = first(p, StepOp::kPut);
                put.target.space = Space::kOutput;
                put.target.offset_bytes = put.target.offset_bytes == 0 ? 4 : 0;
              },
              "another target"},
        Break{"WaitOnAnotherRail",
              [](Plan& p) {
                Step& wait = first(p, StepOp::kWait);
                wait.rail = 1 - wait.rail;
              },
              "another rail"}),
    [](const ::testing::TestParamInfo<Break>& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace polyrail
