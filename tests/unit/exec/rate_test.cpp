#include "src/exec/rate.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace polyrail {
namespace {

constexpr std::uint64_t kSlice = 100'000;

// A rail that delivers slices one after the other; the peer's clock is far from ours.
struct Rail {
  explicit Rail(double believed) { rate.reset(30, believed); }

  // A busy period of `count` slices at `bytes_per_s`, each acknowledged `ack_delay_us` after it
  // has landed.
  void run(int count, double bytes_per_s, double ack_delay_us, std::uint64_t bytes = kSlice) {
    now_us += 1000;
    rate.on_busy(now_us);
    for (int i = 0; i < count; ++i) {
      now_us += static_cast<double>(bytes) / bytes_per_s * 1e6;
      rate.on_acknowledged({.bytes = bytes, .landed_us = kPeersClock + now_us});
      rate.settle(now_us + ack_delay_us, i + 1 == count);
    }
    now_us += ack_delay_us;
  }

  static constexpr double kPeersClock = 5e9;
  RateEstimate rate;
  double now_us = 0;
};

TEST(RateEstimate, DoesNotDependOnHowLateAcknowledgementsCome) {
  Rail rail(80e6);
  for (int i = 0; i < 50; ++i) rail.run(10, 100e6, i % 5 * 3000.0);
  EXPECT_NEAR(rail.rate.bytes_per_s(), 100e6, 1e6);
}

TEST(RateEstimate, LumpsCancelOut) {
  Rail rail(100e6);
  rail.rate.on_busy(0);
  for (int i = 1; i <= 1000; ++i) {
    // The peer looks at its sockets every 4 ms.
    const double landed_us = (i * 1000 / 4000 + 1) * 4000;
    rail.rate.on_acknowledged({.bytes = kSlice, .landed_us = landed_us});
    rail.rate.settle(landed_us, false);
    EXPECT_NEAR(rail.rate.bytes_per_s(), 100e6, 10e6);
  }
}

TEST(RateEstimate, CountsWhatHadArrivedWithoutHavingLanded) {
  // Bytes come in lumps somewhat shorter than slices. Each busy period begins on a boundary.
  constexpr double kBytesPerUs = 62;
  constexpr std::uint64_t kLump = 64'000;
  constexpr std::uint64_t kLong = 73'000;
  constexpr std::uint64_t kSlices = 4;
  RateEstimate rate;
  rate.reset(30, kBytesPerUs * 1e6);
  double begin_us = 0;
  for (int period = 0; period < 200; ++period) {
    rate.on_busy(begin_us);
    double now_us = 0;
    for (std::uint64_t i = 1; i <= kSlices; ++i) {
      const std::uint64_t arrived =
          std::min((i * kLong + kLump - 1) / kLump * kLump, kSlices * kLong);
      now_us = begin_us + static_cast<double>(arrived) / kBytesPerUs;
      rate.on_acknowledged(
          {.bytes = kLong, .landed_us = now_us, .ahead_bytes = arrived - i * kLong});
      rate.settle(now_us, i == kSlices);
    }
    begin_us = now_us + 100;
  }
  EXPECT_NEAR(rate.bytes_per_s() * 1e-6, kBytesPerUs, 0.5);
}

TEST(RateEstimate, ForeseesLandingsOnlyAsFarAsNewsHaveBeenLate) {
  RateEstimate rate;
  rate.reset(0, 100e6);
  constexpr double kClock = 5e9;  // of the peer
  const auto hear = [&](double landed_us, double heard_us, bool is_tainted = false) {
    rate.on_acknowledged(
        {.bytes = kSlice, .landed_us = kClock + landed_us, .is_tainted = is_tainted});
    rate.settle(heard_us, false);
  };
  rate.on_busy(0);
  EXPECT_EQ(rate.unlanded_bytes(10 * kSlice, 1000), 10.0 * kSlice) << "nothing is known yet";
  hear(1000, 1000);
  hear(2000, 4000);  // 2 ms late
  EXPECT_NEAR(rate.unlanded_bytes(8 * kSlice, 4000), 6.0 * kSlice, kSlice / 100);
  EXPECT_GE(rate.unlanded_bytes(8 * kSlice, 1e6), 4.9 * kSlice) << "the rail may stand still";
  // Small slices are acknowledged with the time of an earlier one.
  hear(2000, 900'000, true);
  EXPECT_GE(rate.unlanded_bytes(8 * kSlice, 1e6), 4.9 * kSlice);
}

TEST(RateEstimate, LeavesOutTimesWithoutTraffic) {
  Rail rail(100e6);
  rail.rate.on_busy(0);
  double landed_us = 0;
  for (int i = 0; i < 1000; ++i) {
    const bool is_after_gap = i % 3 == 0;
    landed_us += is_after_gap ? 9000 : 1000;
    rail.rate.on_acknowledged(
        {.bytes = kSlice, .landed_us = landed_us, .is_after_gap = is_after_gap});
    rail.rate.settle(landed_us, false);
  }
  EXPECT_NEAR(rail.rate.bytes_per_s(), 100e6, 1e6);
}

TEST(RateEstimate, DoesNotLearnFromWhatThePeerWasNotReadyFor) {
  Rail rail(100e6);
  double landed_us = 0;
  for (int i = 0; i < 1000; ++i) {
    rail.rate.on_busy(landed_us);
    landed_us += 20000;
    rail.rate.on_acknowledged({.bytes = kSlice, .landed_us = landed_us, .is_tainted = true});
    rail.rate.settle(landed_us, true);
  }
  EXPECT_EQ(rail.rate.bytes_per_s(), 100e6);
}

TEST(RateEstimate, IsNotFooledByTheBurstOfATokenBucket) {
  Rail rail(100e6);
  for (int i = 0; i < 1000; ++i) rail.run(2, 2e9, 50, 30'000);
  EXPECT_LT(rail.rate.bytes_per_s(), 110e6);
}

TEST(RateEstimate, BelievesSoonThatARailHasChanged) {
  Rail rail(100e6);
  rail.run(2, 10e6, 2000);  // 10 ms and more of traffic each
  rail.run(2, 10e6, 2000);
  EXPECT_NEAR(rail.rate.bytes_per_s(), 10e6, 2e6);
  for (int i = 0; i < 3; ++i) rail.run(10, 100e6, 2000);
  EXPECT_NEAR(rail.rate.bytes_per_s(), 100e6, 20e6);
}

// One slice at a time: there are no two landings to compare.
TEST(RateEstimate, NoticesACollapseFromSingleSlices) {
  Rail rail(100e6);
  for (int i = 0; i < 200; ++i) rail.run(1, 90e6, 300);
  EXPECT_EQ(rail.rate.bytes_per_s(), 100e6);
  for (int i = 0; i < 3; ++i) rail.run(1, 10e6, 300);
  EXPECT_NEAR(rail.rate.bytes_per_s(), 10e6, 2e6);
}

// What looked like a slow rail was a busy processor.
TEST(RateEstimate, TakesBackACollapseThatOnlySingleSlicesHaveTold) {
  Rail rail(100e6);
  for (int i = 0; i < 20; ++i) rail.run(1, 10e6, 300);
  EXPECT_NEAR(rail.rate.bytes_per_s(), 10e6, 2e6);
  for (int i = 0; i < 40; ++i) rail.run(1, 2e9, 40, 10'000);
  EXPECT_EQ(rail.rate.bytes_per_s(), 100e6) << "no more than before, whatever a bucket lets pass";
}

TEST(RateEstimate, LearnsFromLongSingleSlicesThatARailIsSomewhatSlower) {
  Rail rail(3.3e6);
  for (int i = 0; i < 6; ++i) rail.run(1, 3.1e6, 1000, 16'000);
  EXPECT_EQ(rail.rate.bytes_per_s(), 3.3e6);
  for (int i = 0; i < 2; ++i) rail.run(1, 3.1e6, 0, 16'000);
  EXPECT_NEAR(rail.rate.bytes_per_s(), 3.1e6, 0.03e6);
  for (int i = 0; i < 100; ++i) rail.run(1, 3.1e6, i % 4 * 500, 16'000);
  EXPECT_NEAR(rail.rate.bytes_per_s(), 3.1e6, 0.05e6);
  for (int i = 0; i < 100; ++i) rail.run(1, 1e9, 100, 16'000);
  EXPECT_NEAR(rail.rate.bytes_per_s(), 3.1e6, 0.05e6) << "a bucket lets anything pass";
}

TEST(RateEstimate, LearnsWithoutThePeersClockOnlyOfCollapses) {
  Rail rail(100e6);
  double now_us = 0;
  for (int i = 0; i < 5; ++i) {
    rail.rate.on_busy(now_us);
    now_us += 10000;
    rail.rate.on_acknowledged({.bytes = kSlice});
    rail.rate.settle(now_us, true);
  }
  EXPECT_NEAR(rail.rate.bytes_per_s(), 10e6, 2e6);
}

}  // namespace
}  // namespace polyrail
