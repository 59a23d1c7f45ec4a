// Cost curves: evaluation, inverse, and the shapes that are easy to get wrong.
#include "topology/rail.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace polyrail {
namespace {

TEST(RailKind, NamesParseBack) {
  for (const RailKind kind : {RailKind::kLoopback, RailKind::kShm, RailKind::kTcp, RailKind::kUcx,
                              RailKind::kVerbs, RailKind::kCudaIpc}) {
    EXPECT_EQ(parse_rail_kind(name(kind)), kind);
  }
  EXPECT_EQ(parse_rail_kind("TCP"), std::nullopt);
  EXPECT_EQ(parse_rail_kind(""), std::nullopt);
  EXPECT_EQ(name(static_cast<RailKind>(200)), "unknown");
}

TEST(CostCurve, LinearIsLatencyPlusBytesOverRate) {
  const CostCurve curve = CostCurve::linear(25, 125e6);
  EXPECT_EQ(curve.latency_us(), 25);
  EXPECT_DOUBLE_EQ(curve.bytes_per_s(), 125e6);
  EXPECT_EQ(curve.time_us(0), 25);
  EXPECT_DOUBLE_EQ(curve.time_us(125e6), 25 + 1e6);
  EXPECT_DOUBLE_EQ(curve.time_us(1e12), 25 + 8e9);  // beyond the last point
  EXPECT_DOUBLE_EQ(curve.bytes_within(25 + 1e6), 125e6);
}

TEST(CostCurve, LinearWithoutARateIsNotKnown) {
  EXPECT_TRUE(CostCurve::linear(1, 0).is_empty());
  EXPECT_TRUE(CostCurve::linear(1, -5).is_empty());
  EXPECT_TRUE(CostCurve::linear(1, std::nan("")).is_empty());
}

TEST(CostCurve, EmptyMovesNothing) {
  const CostCurve curve;
  EXPECT_TRUE(curve.is_empty());
  EXPECT_EQ(curve.latency_us(), 0);
  EXPECT_EQ(curve.bytes_per_s(), 0);
  EXPECT_EQ(curve.bytes_within(1e9), 0);
}

TEST(CostCurve, OnePointCostsTheSameForAnySize) {
  const CostCurve curve{{{64, 3}}};
  EXPECT_EQ(curve.time_us(0), 3);
  EXPECT_EQ(curve.time_us(64), 3);
  EXPECT_EQ(curve.time_us(1e12), 3);
  EXPECT_TRUE(std::isinf(curve.bytes_per_s()));
  EXPECT_EQ(curve.bytes_within(2.9), 0);
  EXPECT_TRUE(std::isinf(curve.bytes_within(3)));
}

TEST(CostCurve, PassesThroughItsPointsExactly) {
  const CostCurve curve{{{8, 0.3}, {4096, 1.7}, {65536, 12.1}, {1 << 20, 100.3}}};
  for (const CostCurve::Point& point : curve.points) {
    EXPECT_EQ(curve.time_us(static_cast<double>(point.bytes)), point.time_us);
    EXPECT_EQ(curve.bytes_within(point.time_us), static_cast<double>(point.bytes));
  }
  EXPECT_EQ(curve.time_us(1), 0.3);  // below the first point
  EXPECT_DOUBLE_EQ(curve.time_us((8 + 4096) / 2.0), 1.0);
}

TEST(CostCurve, ContinuesWithTheLastSlope) {
  const CostCurve curve{{{0, 1}, {100, 2}, {200, 6}}};
  EXPECT_DOUBLE_EQ(curve.bytes_per_s(), 100 / 4e-6);
  EXPECT_DOUBLE_EQ(curve.time_us(300), 10);
  EXPECT_DOUBLE_EQ(curve.bytes_within(10), 300);
}

TEST(CostCurve, NothingArrivesBeforeTheLatency) {
  const CostCurve curve = CostCurve::linear(25, 125e6);
  EXPECT_EQ(curve.bytes_within(24.999), 0);
  EXPECT_EQ(curve.bytes_within(-1), 0);
  EXPECT_EQ(curve.bytes_within(std::nan("")), 0);
  EXPECT_EQ(curve.bytes_within(25), 0);
}

TEST(CostCurve, FlatStretchYieldsItsFarEnd) {
  const CostCurve curve{{{0, 5}, {1000, 5}, {2000, 7}, {3000, 7}, {4000, 9}}};
  EXPECT_EQ(curve.bytes_within(5), 1000);
  EXPECT_DOUBLE_EQ(curve.bytes_within(6), 1500);
  EXPECT_EQ(curve.bytes_within(7), 3000);
  EXPECT_EQ(curve.time_us(500), 5);
  EXPECT_EQ(curve.time_us(2500), 7);
}

TEST(CostCurve, FlatEndIsInfinitelyFast) {
  const CostCurve curve{{{0, 1}, {1000, 5}, {2000, 5}}};
  EXPECT_TRUE(std::isinf(curve.bytes_per_s()));
  EXPECT_EQ(curve.time_us(1e9), 5);
  EXPECT_TRUE(std::isinf(curve.bytes_within(5)));
  EXPECT_DOUBLE_EQ(curve.bytes_within(3), 500);
}

TEST(CostCurve, InverseUndoesEvaluationOnRandomCurves) {
  std::mt19937 random(20240131);
  std::uniform_real_distribution<double> unit(0.01, 1);
  for (int round = 0; round < 200; ++round) {
    CostCurve curve;
    CostCurve::Point point;
    for (int i = 0, count = 2 + round % 6; i < count; ++i) {
      point.bytes += static_cast<std::uint64_t>(1 + 1e5 * unit(random));
      point.time_us += 100 * unit(random);
      curve.points.push_back(point);
    }
    for (int i = 0; i < 20; ++i) {
      const double bytes = static_cast<double>(curve.points.front().bytes) + 1e6 * unit(random);
      const double back = curve.bytes_within(curve.time_us(bytes));
      // Two divisions and a product of rounded values, magnified by at most steepness ratios.
      EXPECT_NEAR(back, bytes, 1e-9 * bytes);
    }
  }
}

TEST(CostCurve, TimeNeverFallsWithSize) {
  const CostCurve curve{{{0, 0.1}, {3, 0.1}, {7, 0.30000000000000004}, {11, 0.7}}};
  double before = 0;
  for (int i = 0; i <= 2000; ++i) {
    const double time_us = curve.time_us(i * 0.01);
    EXPECT_GE(time_us, before);
    before = time_us;
  }
}

}  // namespace
}  // namespace polyrail
