// The proofs themselves: plans broken in one place must be refused. Each way to break a plan is
// tried at every place where it applies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "src/plan/check.hpp"
#include "src/plan/planner.hpp"
#include "tests/unit/plan/make.hpp"

namespace polyrail {
namespace {

using ::testing::HasSubstr;
using testing::make_equal;
using testing::make_spec;

Plan made(const std::string& algorithm, int rank_count, bool is_in_place,
          std::uint64_t count = 6000) {
  PlanOptions options;
  options.algorithm = algorithm;
  const Topology topology = make_equal(rank_count, {{1000, 20}});
  Result<Plan> plan = make_plan(topology, make_spec(rank_count, count, is_in_place), options);
  EXPECT_TRUE(plan.is_ok()) << plan.status().message();
  EXPECT_TRUE(check(plan.value()).is_ok());
  return plan.value();
}

class BrokenPlans : public ::testing::TestWithParam<std::string> {
 protected:
  // Calls `visit` with copies of plans of the algorithm and with each of their steps.
  void for_each_step(const std::function<void(Plan&, Step&)>& visit) {
    for (int rank_count = 2; rank_count <= 5; ++rank_count) {
      for (const bool is_in_place : {false, true}) {
        const Plan plan = made(GetParam(), rank_count, is_in_place);
        for (std::size_t rank = 0; rank < plan.schedules.size(); ++rank) {
          for (std::size_t i = 0; i < plan.schedules[rank].steps.size(); ++i) {
            SCOPED_TRACE(::testing::Message() << rank_count << " ranks, in place " << is_in_place
                                              << ", rank " << rank << ", step " << i);
            Plan copy = plan;
            visit(copy, copy.schedules[rank].steps[i]);
          }
        }
      }
    }
  }
};

// True if `earlier` is done before `step` also by way of its other dependencies.
bool is_implied(const Schedule& schedule, const Step& step, std::uint32_t earlier) {
  for (const std::uint32_t other : step.after) {
    if (other <= earlier) continue;
    const Step& between = schedule.steps[other];
    for (const std::uint32_t before : between.after) {
      if (before == earlier || is_implied(schedule, between, earlier)) return true;
    }
  }
  return false;
}

TEST_P(BrokenPlans, AreRefusedWithoutAnyOneDependency) {
  int tried = 0;
  for_each_step([&](Plan& plan, Step& step) {
    const Step whole = step;
    for (std::size_t i = 0; i < whole.after.size(); ++i) {
      for (const Schedule& schedule : plan.schedules) {
        if (&step < schedule.steps.data() || &step >= schedule.steps.data() + schedule.steps.size())
          continue;
        if (is_implied(schedule, whole, whole.after[i])) return;
      }
      step = whole;
      step.after.erase(step.after.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(check(plan).is_ok()) << "without step " << whole.after[i];
      ++tried;
    }
  });
  EXPECT_GT(tried, 10);
}

TEST_P(BrokenPlans, AreRefusedWhenASourceIsShifted) {
  for_each_step([](Plan& plan, Step& step) {
    if (step.op == StepOp::kWait || step.source.space == Space::kScratch) return;
    if (step.source.offset_bytes == 0) return;
    step.source.offset_bytes -= 4;
    EXPECT_FALSE(check(plan).is_ok());
  });
}

TEST_P(BrokenPlans, AreRefusedWhenATargetIsShifted) {
  for_each_step([](Plan& plan, Step& step) {
    if (step.op == StepOp::kWait || step.op == StepOp::kPut) return;
    step.target.offset_bytes += step.target.offset_bytes == 0 ? 4 : -4;
    EXPECT_FALSE(check(plan).is_ok());
  });
}

TEST_P(BrokenPlans, AreRefusedWhenARankContributesTwice) {
  for_each_step([](Plan& plan, Step& step) {
    if (step.op != StepOp::kReduce) return;
    step.operand = step.source;
    EXPECT_FALSE(check(plan).is_ok());
  });
}

TEST_P(BrokenPlans, AreRefusedWhenAReduceIsACopy) {
  for_each_step([](Plan& plan, Step& step) {
    if (step.op != StepOp::kReduce) return;
    step.op = StepOp::kCopy;
    step.operand = {};
    EXPECT_FALSE(check(plan).is_ok());
  });
}

TEST_P(BrokenPlans, AreRefusedWhenFinishingIsMissingOrTooMuch) {
  for_each_step([](Plan& plan, Step& step) {
    if (step.op != StepOp::kReduce && step.op != StepOp::kCopy) return;
    step.is_final = !step.is_final;
    EXPECT_FALSE(check(plan).is_ok());
  });
}

TEST_P(BrokenPlans, AreRefusedWhenTwoWaitsAreSwapped) {
  for_each_step([](Plan& plan, Step& step) {
    if (step.op != StepOp::kWait) return;
    for (Schedule& schedule : plan.schedules) {
      for (Step& other : schedule.steps) {
        const bool is_same_schedule = !schedule.steps.empty() && &step >= schedule.steps.data() &&
                                      &step < schedule.steps.data() + schedule.steps.size();
        if (!is_same_schedule || other.op != StepOp::kWait || &other == &step) continue;
        std::swap(step.signal, other.signal);
        EXPECT_FALSE(check(plan).is_ok());
        std::swap(step.signal, other.signal);
      }
    }
  });
}

TEST_P(BrokenPlans, AreRefusedWhenAStepIsLeftOut) {
  for_each_step([](Plan& plan, Step& step) {
    // A copy onto itself: the step is there, but does nothing.
    if (step.op != StepOp::kReduce && step.op != StepOp::kCopy) return;
    step.op = StepOp::kCopy;
    step.operand = {};
    step.source = step.target;
    step.is_final = false;
    EXPECT_FALSE(check(plan).is_ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Each, BrokenPlans,
                         ::testing::Values("one_shot", "one_shot_staged", "direct", "ring",
                                           "recursive_doubling", "halving_doubling", "tree"),
                         [](const ::testing::TestParamInfo<std::string>& one) {
                           std::string text;
                           for (const char c : one.param) text += std::isalnum(c) != 0 ? c : '_';
                           return text;
                         });

TEST(CheckValues, RefusesOtherOperandOrderOnOneRank) {
  Plan plan = made("one_shot", 2, false);
  for (Step& step : plan.schedules[1].steps) {
    if (step.op == StepOp::kReduce) std::swap(step.source, step.operand);
  }
  EXPECT_THAT(check_values(plan).message(), HasSubstr("another operand order"));
}

TEST(CheckValues, RefusesSwappedPutSources) {
  Plan plan = made("direct", 3, false);
  Step& first = plan.schedules[0].steps[0];
  for (Step& step : plan.schedules[0].steps) {
    if (&step != &first && step.op == StepOp::kPut && step.source.space == Space::kInput) {
      std::swap(step.source, first.source);
    }
  }
  EXPECT_THAT(check_values(plan).message(), HasSubstr("combines byte"));
}

TEST(CheckOrder, NamesBothStepsThatRace) {
  Plan plan = made("one_shot", 2, true);
  for (Step& step : plan.schedules[0].steps) {
    if (step.op == StepOp::kReduce) step.after = {1};  // no longer after its own put
  }
  const std::string message = check_order(plan).message();
  EXPECT_THAT(message, HasSubstr("rank 0, step 0 (put), reading"));
  EXPECT_THAT(message, HasSubstr("rank 0, step 2 (reduce), writing"));
}

TEST(CheckOrder, RefusesCircles) {
  Plan plan = made("one_shot", 2, false);
  for (Schedule& schedule : plan.schedules) {
    // Each rank puts only when it has got the other's.
    if (schedule.steps[0].op == StepOp::kPut) std::swap(schedule.steps[0], schedule.steps[1]);
    schedule.steps[1].after = {0};
    schedule.steps[2].after = {0};
  }
  ASSERT_TRUE(check_shape(plan).is_ok()) << check_shape(plan).message();
  EXPECT_THAT(check_order(plan).message(), HasSubstr("circle"));
}

TEST(CheckOrder, RefusesAShiftedOperandOfTheSameStep) {
  CollectiveSpec spec = make_spec(1, 8, true);
  Plan plan{spec, "hand-made", 0, 0, 0, {Schedule{}}};
  Step step;
  step.op = StepOp::kCopy;
  step.source = {Space::kInput, 0, 16};
  step.target = {Space::kOutput, 4, 16};
  plan.schedules[0].steps.push_back(step);
  EXPECT_THAT(check_order(plan).message(), HasSubstr("still reads"));
}

// In place the sum goes where the contribution is still being put from, as far as that is done.
TEST(CheckOrder, LetsASumFollowThePutThatItWritesOver) {
  const Plan plan = made("one_shot", 2, true);
  EXPECT_TRUE(check_order(plan).is_ok());
  Plan careless = plan;
  for (Step& step : careless.schedules[0].steps) {
    if (step.op != StepOp::kReduce) continue;
    std::erase_if(step.after, [&](std::uint32_t before) {
      return careless.schedules[0].steps[before].op == StepOp::kPut;
    });
  }
  EXPECT_THAT(check_order(careless).message(), HasSubstr("in no order"));
}

// Scratch is used again by the next run only because receivers hold early bytes back. In a ring a
// rank is done only when its successor has used what it got.
TEST(CheckOrder, NeedsReceiversToHoldBytesOfTheNextRun) {
  for (const char* algorithm : {"one_shot", "direct"}) {
    const Plan plan = made(algorithm, 3, false);
    EXPECT_TRUE(check_order(plan, {.receiver_holds_early_bytes = true}).is_ok());
    const Status status = check_order(plan, {.receiver_holds_early_bytes = false});
    EXPECT_THAT(status.message(), HasSubstr("in the next run")) << algorithm;
  }
}

}  // namespace
}  // namespace polyrail
