// The 16-bit floats: every pattern, every tie, through the element functions and the SIMD loops.
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/element.hpp"
#include "kernels/kernels.hpp"
#include "kernels/ops.hpp"
#include "tests/unit/kernels/instruction_sets.hpp"
#include "tests/unit/kernels/oracle.hpp"

namespace polyrail {
namespace {

constexpr int kPatternCount = 1 << 16;

using kernels::one_lane::to_element;
using kernels::one_lane::to_number;

template <DataType type>
void check_every_pattern_survives(oracle::SmallFloat format) {
  for (int i = 0; i < kPatternCount; ++i) {
    const auto pattern = static_cast<std::uint16_t>(i);
    const float expected = oracle::decode(format, pattern);
    const float number = to_number<type>(pattern);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(number)) << pattern;
      ASSERT_TRUE(std::isnan(oracle::decode(format, to_element<type>(number)))) << pattern;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(number), std::bit_cast<std::uint32_t>(expected));
      ASSERT_EQ(to_element<type>(number), pattern);
    }
  }
}

TEST(Float16, EveryPatternSurvivesFp32) {
  check_every_pattern_survives<DataType::kFloat16>(oracle::kFloat16);
}
TEST(Bfloat16, EveryPatternSurvivesFp32) {
  check_every_pattern_survives<DataType::kBfloat16>(oracle::kBfloat16);
}

// Every upper half of an fp32, with lower halves at and around the tie of either format.
template <DataType type>
void check_rounding(oracle::SmallFloat format) {
  const std::uint32_t lower_halves[] = {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x2000, 0x3000,
                                        0x7fff, 0x8000, 0x8001, 0xefff, 0xf000, 0xf001, 0xffff};
  for (std::uint32_t upper = 0; upper < kPatternCount; ++upper) {
    for (std::uint32_t lower : lower_halves) {
      const float value = std::bit_cast<float>(upper << 16 | lower);
      const std::uint16_t got = to_element<type>(value);
      if (std::isnan(value)) {
        const int quiet_bit = 1 << (format.mantissa_bits - 1);
        ASSERT_TRUE(std::isnan(oracle::decode(format, got))) << upper << " " << lower;
        ASSERT_NE(got & quiet_bit, 0) << upper << " " << lower;
      } else {
        ASSERT_EQ(got, oracle::encode(format, value)) << upper << " " << lower;
      }
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  check_rounding<DataType::kFloat16>(oracle::kFloat16);
}
TEST(Bfloat16, RoundsToNearestEven) {
  check_rounding<DataType::kBfloat16>(oracle::kBfloat16);
}

// Each fp8 number, the ties between neighbours, and what is just beside: through the element
// functions alone. cast_test.cpp has the SIMD loops.
template <DataType type>
void check_float8(oracle::SmallFloat format) {
  for (int i = 0; i < 256; ++i) {
    const auto pattern = static_cast<std::uint8_t>(i);
    const float number = to_number<type>(pattern);
    const float expected = oracle::decode(format, pattern);
    ASSERT_TRUE(number == expected || (std::isnan(number) && std::isnan(expected))) << i;
    const float next = oracle::decode(format, static_cast<std::uint16_t>(i + 1));
    for (float value : {number, (number + next) / 2, std::nextafter((number + next) / 2, 0.0f),
                        std::nextafter((number + next) / 2, number + next)}) {
      if (std::isnan(value)) continue;
      ASSERT_EQ(to_element<type>(value), oracle::encode(format, value)) << i << " " << value;
    }
  }
  ASSERT_TRUE(std::isnan(to_number<type>(to_element<type>(NAN))));
}

TEST(Float8, IsRoundedToNearestEvenAndSaturates) {
  check_float8<DataType::kFloat8E4M3>(oracle::kFloat8E4M3);
  check_float8<DataType::kFloat8E5M2>(oracle::kFloat8E5M2);
}

class Rounding : public OnEachInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Kernels, Rounding, instruction_sets(), instruction_set_name);

// Each finite number plus `fraction` of its last place, both signs.
void check_sums(DataType type, oracle::SmallFloat format, float fraction) {
  std::vector<std::uint16_t> a;
  std::vector<std::uint16_t> b;
  for (int i = 0; i < kPatternCount; ++i) {
    const auto pattern = static_cast<std::uint16_t>(i);
    const float number = oracle::decode(format, pattern);
    if (!std::isfinite(number)) continue;
    const int exponent =
        number == 0 ? format.min_exponent : std::max(std::ilogb(number), format.min_exponent);
    a.push_back(pattern);
    b.push_back(oracle::encode(format, std::ldexp(fraction, exponent - format.mantissa_bits)));
  }
  const void* const sources[] = {a.data(), b.data()};
  std::vector<std::uint16_t> expected(a.size());
  std::vector<std::uint16_t> got(a.size());
  oracle::reduce(type, ReduceOp::kSum, sources, expected.data(), a.size(), 1);
  reduce(type, ReduceOp::kSum, a.data(), b.data(), got.data(), a.size());
  EXPECT_EQ(oracle::first_difference(type, expected.data(), got.data(), a.size()), "")
      << name(type) << " " << fraction;
}

TEST_P(Rounding, SumsRoundOnceToNearestEven) {
  for (float fraction : {0.0f, 0.25f, 0.5f, 0.5078125f, 0.49609375f, 0.75f, 1.5f}) {
    for (float sign : {1.0f, -1.0f}) {
      check_sums(DataType::kFloat16, oracle::kFloat16, sign * fraction);
      check_sums(DataType::kBfloat16, oracle::kBfloat16, sign * fraction);
    }
  }
}

TEST_P(Rounding, EveryPatternTimesOneIsItself) {
  std::vector<std::uint16_t> all(kPatternCount);
  for (int i = 0; i < kPatternCount; ++i) all[i] = static_cast<std::uint16_t>(i);
  for (DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    const std::uint16_t one = type == DataType::kFloat16 ? 0x3c00 : 0x3f80;
    const std::vector<std::uint16_t> ones(kPatternCount, one);
    std::vector<std::uint16_t> got(kPatternCount);
    reduce(type, ReduceOp::kProd, all.data(), ones.data(), got.data(), all.size());
    EXPECT_EQ(oracle::first_difference(type, all.data(), got.data(), all.size()), "");
  }
}

TEST_P(Rounding, ManySourcesRoundOnlyAtTheEnd) {
  // 2048 + 0.5 + 0.5 is 2049 in fp32, rounded to 2048 at the end; after -1: 2048 exactly. Rounding
  // at each step would lose the halves before the last step could need them.
  const std::vector<std::uint16_t> big(40, oracle::encode(oracle::kFloat16, 2048));
  const std::vector<std::uint16_t> half(40, oracle::encode(oracle::kFloat16, 0.5f));
  const std::vector<std::uint16_t> two(40, oracle::encode(oracle::kFloat16, 2));
  std::vector<std::uint16_t> got(40);
  for (std::size_t half_count : {2, 4, 6, 10, 14}) {
    std::vector<const void*> sources = {big.data()};
    for (std::size_t i = 0; i < half_count; ++i) sources.push_back(half.data());
    sources.push_back(two.data());
    reduce_many(DataType::kFloat16, ReduceOp::kSum, sources, got.data(), 40);
    const auto sum = 2050 + 0.5f * static_cast<float>(half_count);
    EXPECT_EQ(got, std::vector<std::uint16_t>(40, oracle::encode(oracle::kFloat16, sum)));
  }
}

}  // namespace
}  // namespace polyrail
