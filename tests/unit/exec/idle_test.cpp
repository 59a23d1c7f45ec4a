#include "src/exec/idle.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace polyrail {
namespace {

using Pass = IdlePolicy::Pass;

constexpr double kRoundUs = 1;  // of progress, between two looks

// A waiter whose yields take so long.
struct Waiter {
  // Until the news comes, or the waiter sleeps; returns how it passed the time last.
  Pass wait(double news_after_us) {
    const double begin_us = now_us;
    policy.on_wait_begin(now_us);
    Pass pass = Pass::kPause;
    do {
      pass = policy.next(now_us);
      if (pass == Pass::kYield) {
        policy.on_yielded(yield_us);
        now_us += yield_us;
      }
      now_us += kRoundUs;
    } while (pass != Pass::kSleep && now_us < begin_us + news_after_us);
    now_us = std::max(now_us, begin_us + news_after_us);
    policy.on_wait_end(now_us);
    return pass;
  }
  Pass settle(double news_after_us) {
    for (int i = 0; i < 100; ++i) wait(news_after_us);
    return wait(news_after_us);
  }

  IdlePolicy policy{-1};
  double yield_us = 0.3;
  double now_us = 1e6;
};

TEST(IdlePolicy, SpinsWhileNewsComesSoon) {
  Waiter waiter;
  EXPECT_EQ(waiter.settle(4), Pass::kPause);
  EXPECT_EQ(waiter.settle(30), Pass::kYield);
  EXPECT_FALSE(waiter.policy.is_shared());
}

TEST(IdlePolicy, SleepsAtOnceWhenNewsComesLate) {
  Waiter waiter;
  EXPECT_EQ(waiter.settle(1000), Pass::kSleep);
  waiter.policy.on_wait_begin(waiter.now_us);
  EXPECT_EQ(waiter.policy.next(waiter.now_us), Pass::kSleep);
}

TEST(IdlePolicy, LearnsFromSleepsThatNewsComesSoonAgain) {
  Waiter waiter;
  waiter.settle(1000);
  EXPECT_EQ(waiter.settle(4), Pass::kPause);
}

TEST(IdlePolicy, YieldsAtOnceWhereOthersWantTheProcessor) {
  Waiter waiter;
  waiter.yield_us = 10;
  waiter.settle(40);
  EXPECT_TRUE(waiter.policy.is_shared());
  waiter.policy.on_wait_begin(waiter.now_us);
  EXPECT_EQ(waiter.policy.next(waiter.now_us), Pass::kYield);
  waiter.policy.on_wait_end(waiter.now_us);
}

TEST(IdlePolicy, FindsOutThatItIsAloneAgain) {
  Waiter waiter;
  waiter.yield_us = 10;
  waiter.settle(40);
  waiter.yield_us = 0.3;
  waiter.settle(40);
  EXPECT_FALSE(waiter.policy.is_shared());
}

TEST(IdlePolicy, SleepsForAWhileAfterOthersKeptTheProcessor) {
  Waiter waiter;
  waiter.yield_us = 3000;  // a turn of the scheduler
  EXPECT_EQ(waiter.wait(6000), Pass::kSleep);
  waiter.yield_us = 0.3;
  EXPECT_EQ(waiter.wait(4), Pass::kSleep);
  waiter.now_us += 3e6;
  EXPECT_EQ(waiter.settle(4), Pass::kPause);
}

TEST(IdlePolicy, HoldsToAFixedTime) {
  Waiter never;
  never.policy = IdlePolicy(0);
  EXPECT_EQ(never.wait(4), Pass::kSleep);
  Waiter always;
  always.policy = IdlePolicy(500);
  always.yield_us = 3000;
  always.wait(6000);
  always.yield_us = 0.3;
  EXPECT_EQ(always.settle(400), Pass::kYield);
  EXPECT_EQ(always.wait(600), Pass::kSleep);
}

}  // namespace
}  // namespace polyrail
