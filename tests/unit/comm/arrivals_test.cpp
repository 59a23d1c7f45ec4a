#include "src/comm/arrivals.hpp"

#include <gtest/gtest.h>

namespace polyrail {
namespace {

constexpr double kBytesPerUs = 100;
constexpr std::uint64_t kSlice = 32 * 1024;

// Arrivals one after the other.
struct Stream {
  void run(int lump_count, double bytes_per_us, int slices_in_a_lump = 1) {
    for (int lump = 0; lump < lump_count; ++lump) {
      at_us += slices_in_a_lump * (kSlice / bytes_per_us);
      for (int i = 0; i < slices_in_a_lump; ++i) {
        bytes += kSlice;
        arrivals.push_back({at_us + i, bytes});
      }
    }
  }
  std::vector<Arrival> arrivals;
  double at_us = 1e9;
  std::uint64_t bytes = 0;
};

TEST(ArrivalRate, IsThatOfAnEvenStream) {
  for (const int slice_count : {3, 10, 1000}) {
    Stream stream;
    stream.run(slice_count, kBytesPerUs);
    EXPECT_NEAR(arrival_rate(stream.arrivals), kBytesPerUs * 1e6, 1e3) << slice_count;
  }
}

TEST(ArrivalRate, LeavesOutTheBurstOfATokenBucket) {
  Stream stream;
  stream.run(100, 100 * kBytesPerUs);
  stream.run(400, kBytesPerUs);
  EXPECT_NEAR(arrival_rate(stream.arrivals), kBytesPerUs * 1e6, 1e3);
}

TEST(ArrivalRate, LeavesOutTheRecoveryFromALoss) {
  Stream stream;
  stream.run(300, kBytesPerUs);
  stream.run(8, kBytesPerUs / 10);
  EXPECT_NEAR(arrival_rate(stream.arrivals), kBytesPerUs * 1e6, 1e3);
}

// Three slices at a time: from the first of a lump to the last of another one there would be five
// slices in the time of three.
TEST(ArrivalRate, TakesALumpForOneArrival) {
  Stream stream;
  stream.run(6, kBytesPerUs, 3);
  EXPECT_NEAR(arrival_rate(stream.arrivals), kBytesPerUs * 1e6, kBytesPerUs * 1e4);
}

TEST(ArrivalRate, DoesNotTakeTheBestOfFew) {
  Stream stream;
  stream.run(24, kBytesPerUs);
  stream.run(8, kBytesPerUs * 0.8);
  stream.run(8, kBytesPerUs * 1.33);
  EXPECT_NEAR(arrival_rate(stream.arrivals), kBytesPerUs * 1e6, kBytesPerUs * 3e4);
}

TEST(ArrivalRate, IsZeroForTooFewArrivals) {
  EXPECT_EQ(arrival_rate({}), 0);
  EXPECT_EQ(arrival_rate({{5, 1000}}), 0);
  EXPECT_EQ(arrival_rate({{5, 1000}, {5, 2000}, {5, 3000}}), 0);
}

}  // namespace
}  // namespace polyrail
