// split: shares that make unlike rails finish together.
#include "src/plan/split.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace polyrail {
namespace {

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void expect_equal_finish(const std::vector<CostCurve>& curves, std::uint64_t bytes) {
  const Split result = split(curves, bytes, 0);
  EXPECT_NEAR(sum(result.bytes), static_cast<double>(bytes), 1e-6 * static_cast<double>(bytes));
  for (std::size_t r = 0; r < curves.size(); ++r) {
    if (result.bytes[r] <= 0) {
      // A rail that is left out could not have helped.
      EXPECT_GE(curves[r].latency_us() * (1 + 1e-9), result.time_us);
      continue;
    }
    EXPECT_NEAR(curves[r].time_us(result.bytes[r]), result.time_us, 1e-6 * result.time_us);
  }
}

TEST(Split, FollowsTheClosedFormForStraightCurves) {
  // T = (S + sum a/b) / (sum 1/b), s_r = (T - a_r) / b_r, with times a + b s.
  const std::vector<CostCurve> curves = {CostCurve::linear(20, 125e6), CostCurve::linear(50, 25e6)};
  const Split result = split(curves, 10'000'000, 0);
  const double time = (10e6 + 20 * 125 + 50 * 25) / (125 + 25);
  EXPECT_NEAR(result.time_us, time, 1e-3);
  EXPECT_NEAR(result.bytes[0], (time - 20) * 125, 1);
  EXPECT_NEAR(result.bytes[1], (time - 50) * 25, 1);
}

TEST(Split, UsesOneRailBelowTheCrossing) {
  // The second opens when the first alone takes longer than its latency: (50 - 20) us * 125 B/us.
  const std::vector<CostCurve> curves = {CostCurve::linear(20, 125e6), CostCurve::linear(50, 25e6)};
  const Split below = split(curves, 3740, 0);
  EXPECT_EQ(below.bytes[1], 0);
  EXPECT_EQ(below.verdicts[1], Split::Verdict::kTooLate);
  const Split above = split(curves, 3800, 0);
  EXPECT_GT(above.bytes[1], 0);
  EXPECT_EQ(above.verdicts[1], Split::Verdict::kUsed);
}

TEST(Split, LeavesOutARailThatSavesLessThanItCosts) {
  const std::vector<CostCurve> curves = {CostCurve::linear(20, 100e6), CostCurve::linear(20, 3e6)};
  EXPECT_EQ(split(curves, 1000, 5).verdicts[1], Split::Verdict::kNoGain);
  EXPECT_EQ(split(curves, 1000, 0).verdicts[1], Split::Verdict::kUsed);
  EXPECT_EQ(split(curves, 1'000'000, 5).verdicts[1], Split::Verdict::kUsed);
}

TEST(Split, UsesASlowRailFairlyForLargeMessages) {
  const std::vector<CostCurve> curves = {CostCurve::linear(20, 100e6),
                                         CostCurve::linear(20, 100e6 / 32)};
  const Split result = split(curves, 64 << 20, 5);
  EXPECT_NEAR(result.bytes[1] / sum(result.bytes), 1.0 / 33, 1e-4);
}

TEST(Split, EqualisesPiecewiseCurves) {
  // Protocol switches: a flat start, a step at 64 KiB, different slopes.
  const CostCurve eager_then_bulk = {
      {{0, 8}, {4096, 8}, {65536, 60}, {65537, 110}, {1 << 20, 900}, {16 << 20, 13000}}};
  const CostCurve slow_start = {{{8, 30}, {32768, 70}, {1 << 20, 1100}, {16 << 20, 9000}}};
  for (std::uint64_t bytes = 1 << 20; bytes <= (256ULL << 20); bytes *= 3) {
    expect_equal_finish({eager_then_bulk, slow_start, CostCurve::linear(25, 125e6)}, bytes);
  }
}

TEST(Split, GivesOneRailTheJumpOfAFlatCurve) {
  // Up to 4096 bytes take 8 us on either: one rail is enough, and nothing is lost or doubled.
  const CostCurve flat = {{{0, 8}, {4096, 8}, {65536, 100}}};
  const Split result = split({flat, flat}, 100, 1);
  EXPECT_EQ(result.bytes, (std::vector<double>{100, 0}));
  EXPECT_EQ(result.time_us, 8);
}

TEST(Split, TakesLessTimeTheMoreRailsThereAre) {
  std::vector<CostCurve> curves;
  double before = 1e300;
  for (int r = 0; r < 8; ++r) {
    curves.push_back(CostCurve::linear(10 + 5 * r, 10e6 * (1 + r % 3)));
    const double now = split(curves, 1 << 20, 2).time_us;
    EXPECT_LE(now, before);
    before = now;
  }
}

TEST(Split, DoesNothingForNothing) {
  const Split result = split({CostCurve::linear(5, 1e9), CostCurve::linear(9, 1e9)}, 0, 1);
  EXPECT_EQ(result.bytes, (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace polyrail
