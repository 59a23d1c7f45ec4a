// scale and scaled_sum against the oracle: types, factors, sizes, alignment, aliasing.
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.hpp"
#include "kernels/request.hpp"
#include "tests/unit/kernels/buffer.hpp"
#include "tests/unit/kernels/instruction_sets.hpp"
#include "tests/unit/kernels/oracle.hpp"

namespace polyrail {
namespace {

class Scale : public OnEachInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Kernels, Scale, instruction_sets(), instruction_set_name);

const double kFactors[] = {0.1, 1, -3, 2.5, 0, 1e10, -0.75, 3.5, 127.5, -1e300, 0.49};

template <typename F>
void for_each_type(F f) {
  for (DataType type : kAllDataTypes) {
    if (can_reduce(type, ReduceOp::kPreMulSum)) f(type);
  }
}

TEST_P(Scale, MultipliesEverySize) {
  for_each_type([](DataType type) {
    for (std::size_t count : {0, 1, 2, 7, 15, 16, 63, 64, 65, 127, 128, 129, 1000, 4097}) {
      for (std::size_t misalignment : {0, 8, 3}) {
        const auto source = oracle::random_elements(type, count, count + misalignment);
        const double factor = kFactors[(count + misalignment) % std::size(kFactors)];
        std::vector<std::uint8_t> expected(source.size());
        const void* const sources[] = {source.data()};
        oracle::scaled_sum(type, sources, {&factor, 1}, expected.data(), count, 1);
        GuardedBuffer target(std::vector<std::uint8_t>(source.size()), misalignment);
        scale(type, factor, source.data(), target.data(), count);
        ASSERT_EQ(oracle::first_difference(type, expected.data(), target.data(), count), "")
            << name(type) << " times " << factor;
        GuardedBuffer in_place(source, misalignment);
        scale(type, factor, in_place.data(), in_place.data(), count);
        ASSERT_EQ(oracle::first_difference(type, expected.data(), in_place.data(), count), "")
            << name(type) << " times " << factor;
        ASSERT_TRUE(target.is_guard_intact() && in_place.is_guard_intact());
      }
    }
  });
}

TEST_P(Scale, TakesAnyFactor) {
  const double infinity = std::numeric_limits<double>::infinity();
  for_each_type([&](DataType type) {
    const auto source = oracle::random_elements(type, 300, 5);
    for (double factor : {-0.0, 0.5, 1.5, -0.5, 9.3e18, -9.3e18, 1.9e19, 1e39, 1e-50, infinity,
                          -infinity, std::nan("")}) {
      std::vector<std::uint8_t> expected(source.size());
      std::vector<std::uint8_t> got(source.size());
      const void* const sources[] = {source.data()};
      oracle::scaled_sum(type, sources, {&factor, 1}, expected.data(), 300, 1);
      scale(type, factor, source.data(), got.data(), 300);
      ASSERT_EQ(oracle::first_difference(type, expected.data(), got.data(), 300), "")
          << name(type) << " times " << factor;
    }
  });
}

void check_sum(DataType type, std::size_t source_count, std::size_t count, std::size_t misalignment,
               int target_is_source, std::int64_t divide_by) {
  std::vector<GuardedBuffer> buffers;
  std::vector<const void*> sources;
  std::vector<double> factors;
  for (std::size_t i = 0; i < source_count; ++i) {
    buffers.emplace_back(oracle::random_elements(type, count, 100 * i + count),
                         misalignment * (i + 1) % 64);
    factors.push_back(kFactors[(i + count) % std::size(kFactors)]);
  }
  for (GuardedBuffer& buffer : buffers) sources.push_back(buffer.data());
  std::vector<std::uint8_t> expected(count * size_bytes(type));
  oracle::scaled_sum(type, sources, factors, expected.data(), count, divide_by);
  GuardedBuffer own(std::vector<std::uint8_t>(expected.size()), misalignment);
  GuardedBuffer& target = target_is_source < 0 ? own : buffers[target_is_source];
  scaled_sum(type, sources, factors, target.data(), count, {divide_by});
  ASSERT_EQ(oracle::first_difference(type, expected.data(), target.data(), count), "")
      << name(type) << " sources " << source_count << " divide_by " << divide_by;
  ASSERT_TRUE(target.is_guard_intact());
}

TEST_P(Scale, SumsOneToManySourcesInTheOrderGiven) {
  for_each_type([](DataType type) {
    for (std::size_t source_count : {1, 2, 3, 5, 9}) {
      for (std::size_t count : {1, 7, 65, 517}) {
        check_sum(type, source_count, count, 0, -1, 1);
        check_sum(type, source_count, count, 2, static_cast<int>(source_count) - 1, 3);
        check_sum(type, source_count, count, 1, 0, 4);
      }
    }
    check_sum(type, 20, 20001, 0, 17, 1);
    check_sum(type, 70, 300, 0, -1, 7);
  });
}

TEST_P(Scale, WritesPastTheCacheWhatItWritesInPieces) {
  for (DataType type : {DataType::kFloat32, DataType::kBfloat16, DataType::kFloat8E4M3}) {
    const std::size_t count = kernels::kStreamingBytes / size_bytes(type) + 77;
    const std::vector<std::uint8_t> source(count * size_bytes(type), 0x31);
    std::vector<std::uint8_t> got(source.size());
    scale(type, 0.3, source.data(), got.data(), count);
    std::vector<std::uint8_t> pieces(source.size());
    for (std::size_t i = 0; i < count; i += 4096) {
      const std::size_t at = i * size_bytes(type);
      scale(type, 0.3, &source[at], &pieces[at], std::min<std::size_t>(4096, count - i));
    }
    ASSERT_EQ(oracle::first_difference(type, pieces.data(), got.data(), count), "");
  }
}

TEST(ScaleDeathTest, RefusesTypesWithoutProductsAndFactorsThatDoNotMatch) {
  float value = 0;
  const void* const sources[] = {&value};
  const double factors[] = {1, 2};
  EXPECT_DEATH(scale(DataType::kBool, 2, &value, &value, 1), "can_reduce");
  EXPECT_DEATH(scaled_sum(DataType::kFloat32, sources, factors, &value, 1), "factors");
}

}  // namespace
}  // namespace polyrail
