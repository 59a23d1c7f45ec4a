// Rates and times as text: exact for files, short for people.
#include "topology/units.hpp"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace polyrail {
namespace {

TEST(Units, ReadRatesInBitsAndBytes) {
  EXPECT_EQ(parse_rate("1gbit"), 125e6);
  EXPECT_EQ(parse_rate("2.5gbit"), 312.5e6);
  EXPECT_EQ(parse_rate("500mbit"), 62.5e6);
  EXPECT_EQ(parse_rate("64kbit"), 8000);
  EXPECT_EQ(parse_rate("10GBps"), 10e9);
  EXPECT_EQ(parse_rate("800MBps"), 800e6);
  EXPECT_EQ(parse_rate("5kBps"), 5000);
  EXPECT_EQ(parse_rate("100Bps"), 100);
}

TEST(Units, RefuseWhatIsNotARate) {
  for (const char* text : {"", "1", "gbit", "1 gbit", "1Gbps", "1gbps", "1gbitx", "-1gbit", "0gbit",
                           "0.1Bps", "1e30GBps", "infGBps", "nanGBps", "0x1gbit", "1,5gbit"}) {
    EXPECT_EQ(parse_rate(text), std::nullopt) << text;
  }
}

TEST(Units, ReadTimes) {
  EXPECT_EQ(parse_time_us("25us"), 25);
  EXPECT_EQ(parse_time_us("300ns"), 0.3);
  EXPECT_EQ(parse_time_us("1.5ms"), 1500);
  EXPECT_EQ(parse_time_us("2s"), 2e6);
  EXPECT_EQ(parse_time_us("0us"), 0);
  EXPECT_FALSE(std::signbit(parse_time_us("-0us").value_or(-1)));
  for (const char* text : {"", "1", "us", "-1us", "1m", "1e20s", "nanus", "1us "}) {
    EXPECT_EQ(parse_time_us(text), std::nullopt) << text;
  }
}

TEST(Units, ExactTextReadsWell) {
  EXPECT_EQ(rate_text(125e6, RateStyle::kBits), "1gbit");
  EXPECT_EQ(rate_text(62.5e6, RateStyle::kBits), "500mbit");
  EXPECT_EQ(rate_text(10e9, RateStyle::kBytes), "10GBps");
  EXPECT_EQ(rate_text(123456789, RateStyle::kBytes), "123.456789MBps");
  EXPECT_EQ(time_text(0.3), "0.3us");
  EXPECT_EQ(time_text(0), "0us");
}

TEST(Units, ExactTextParsesBackToTheSameValue) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(0, 18);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::min(std::pow(10, exponent(random)), 1e18);
    EXPECT_EQ(parse_rate(rate_text(value, RateStyle::kBits)), value);
    EXPECT_EQ(parse_rate(rate_text(value, RateStyle::kBytes)), value);
    EXPECT_EQ(parse_time_us(time_text(value / 1e6)), value / 1e6);
  }
}

TEST(Units, ReadableTextHasThreeDigits) {
  EXPECT_EQ(readable_rate(125e6, RateStyle::kBits), "1 Gbit/s");
  EXPECT_EQ(readable_rate(312.5e6, RateStyle::kBits), "2.5 Gbit/s");
  EXPECT_EQ(readable_rate(124.96e6, RateStyle::kBits), "1 Gbit/s");
  EXPECT_EQ(readable_rate(450e9, RateStyle::kBytes), "450 GB/s");
  EXPECT_EQ(readable_rate(999.96e6, RateStyle::kBytes), "1 GB/s");
  EXPECT_EQ(readable_rate(50e15, RateStyle::kBytes), "50000 TB/s");
  EXPECT_EQ(readable_rate(0, RateStyle::kBits), "-");
  EXPECT_EQ(readable_rate(std::numeric_limits<double>::infinity(), RateStyle::kBits), "no limit");
  EXPECT_EQ(readable_time(0.3), "300 ns");
  EXPECT_EQ(readable_time(25), "25 us");
  EXPECT_EQ(readable_time(1234.5), "1.23 ms");
  EXPECT_EQ(readable_time(0), "0 us");
}

}  // namespace
}  // namespace polyrail
