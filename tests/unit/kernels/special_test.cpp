// NaN, infinities, zeros of both signs and denormals: every pair of them, in every lane.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.hpp"
#include "tests/unit/kernels/instruction_sets.hpp"
#include "tests/unit/kernels/oracle.hpp"

namespace polyrail {
namespace {

class SpecialNumbers : public OnEachInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Kernels, SpecialNumbers, instruction_sets(), instruction_set_name);

constexpr ReduceOp kFloatOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin,
                                  ReduceOp::kAvg};

template <typename T>
std::vector<T> numbers() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all;
  for (T value : {T(0), T(1), T(1.5), Limits::denorm_min(), Limits::min(), Limits::max(),
                  Limits::infinity(), Limits::quiet_NaN(), Limits::signaling_NaN()}) {
    all.push_back(value);
    all.push_back(-value);
  }
  return all;
}
std::vector<std::uint16_t> patterns(std::uint16_t infinity) {
  std::vector<std::uint16_t> all;
  for (int pattern : {0x0000, 0x0001, 0x0002, 0x007f, 0x0080, 0x03ff, 0x0400, 0x3c00, 0x3f80,
                      infinity - 1, infinity + 0, infinity + 1, 0x7fff}) {
    all.push_back(static_cast<std::uint16_t>(pattern));
    all.push_back(static_cast<std::uint16_t>(pattern | 0x8000));
  }
  return all;
}

std::vector<std::uint8_t> all_bytes() {
  std::vector<std::uint8_t> all(256);
  std::iota(all.begin(), all.end(), std::uint8_t{0});
  return all;
}

template <typename T>
void check_pairs(DataType type, const std::vector<T>& values) {
  std::vector<T> a;
  std::vector<T> b;
  for (T first : values) {
    for (T second : values) {
      a.push_back(first);
      b.push_back(second);
    }
  }
  const void* const sources[] = {a.data(), b.data()};
  for (ReduceOp op : kFloatOps) {
    for (std::int64_t divide_by : {1, 2, 3}) {
      std::vector<T> expected(a.size());
      std::vector<T> got(a.size());
      oracle::reduce(type, op, sources, expected.data(), a.size(), divide_by);
      reduce(type, op, a.data(), b.data(), got.data(), a.size(), {divide_by});
      EXPECT_EQ(oracle::first_difference(type, expected.data(), got.data(), a.size()), "")
          << name(type) << " " << name(op) << " divide_by " << divide_by;
    }
  }
}

TEST_P(SpecialNumbers, EveryPairGivesTheOraclesResult) {
  check_pairs(DataType::kFloat32, numbers<float>());
  check_pairs(DataType::kFloat64, numbers<double>());
  check_pairs(DataType::kFloat16, patterns(0x7c00));
  check_pairs(DataType::kBfloat16, patterns(0x7f80));
  check_pairs(DataType::kFloat8E4M3, all_bytes());
  check_pairs(DataType::kFloat8E5M2, all_bytes());
}

TEST_P(SpecialNumbers, ANaNFromAnyOfManySourcesStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (ReduceOp op : kFloatOps) {
    for (std::size_t at = 0; at < 5; ++at) {
      std::vector<std::vector<float>> values(5, std::vector<float>(70, 1.0f));
      values[at].assign(70, nan);
      std::vector<const void*> sources;
      for (const auto& source : values) sources.push_back(source.data());
      std::vector<float> got(70);
      reduce_many(DataType::kFloat32, op, sources, got.data(), 70);
      for (float value : got) ASSERT_TRUE(std::isnan(value)) << name(op) << " source " << at;
    }
  }
}

TEST_P(SpecialNumbers, ZerosOfUnlikeSignDoNotDependOnTheOrder) {
  const std::vector<float> plus(33, 0.0f);
  const std::vector<float> minus(33, -0.0f);
  std::vector<float> got(33);
  for (bool plus_first : {true, false}) {
    const float* a = plus_first ? plus.data() : minus.data();
    const float* b = plus_first ? minus.data() : plus.data();
    reduce(DataType::kFloat32, ReduceOp::kMax, a, b, got.data(), 33);
    for (float value : got) EXPECT_FALSE(std::signbit(value));
    reduce(DataType::kFloat32, ReduceOp::kMin, a, b, got.data(), 33);
    for (float value : got) EXPECT_TRUE(std::signbit(value));
  }
}

}  // namespace
}  // namespace polyrail
