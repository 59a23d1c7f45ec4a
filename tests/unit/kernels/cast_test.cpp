// cast and reduce_mixed: every pattern of the narrow types, ties, sizes, alignment.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.hpp"
#include "kernels/request.hpp"
#include "tests/unit/kernels/buffer.hpp"
#include "tests/unit/kernels/instruction_sets.hpp"
#include "tests/unit/kernels/oracle.hpp"

namespace polyrail {
namespace {

class Cast : public OnEachInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Kernels, Cast, instruction_sets(), instruction_set_name);

constexpr DataType kFloats[] = {DataType::kFloat8E4M3, DataType::kFloat8E5M2, DataType::kFloat16,
                                DataType::kBfloat16,   DataType::kFloat32,    DataType::kFloat64};
constexpr DataType kFloat8s[] = {DataType::kFloat8E4M3, DataType::kFloat8E5M2};
constexpr DataType kNarrow[] = {DataType::kFloat8E4M3, DataType::kFloat8E5M2, DataType::kFloat16,
                                DataType::kBfloat16};

// Casts and compares with the oracle. `Element` is what `from` is stored as.
template <typename Element>
void check(DataType from, DataType to, const std::vector<Element>& source) {
  std::vector<std::uint8_t> expected(source.size() * size_bytes(to));
  std::vector<std::uint8_t> got(expected.size());
  oracle::cast(from, to, source.data(), expected.data(), source.size());
  cast(from, to, source.data(), got.data(), source.size());
  ASSERT_EQ(oracle::first_difference(to, expected.data(), got.data(), source.size()), "")
      << name(from) << " to " << name(to);
}

template <typename Element>
std::vector<Element> all_patterns() {
  std::vector<Element> all;
  for (std::uint32_t i = 0; i < std::uint32_t{1} << (8 * sizeof(Element)); ++i) {
    all.push_back(static_cast<Element>(i));
  }
  return all;
}

TEST_P(Cast, EveryPatternOfANarrowTypeBecomesItsValue) {
  for (DataType to : kFloats) {
    for (DataType from : kFloat8s) check(from, to, all_patterns<std::uint8_t>());
    check(DataType::kFloat16, to, all_patterns<std::uint16_t>());
    check(DataType::kBfloat16, to, all_patterns<std::uint16_t>());
  }
}

TEST_P(Cast, EveryPatternOfFp8SurvivesWiderTypes) {
  for (DataType type : kFloat8s) {
    for (DataType wide :
         {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32, DataType::kFloat64}) {
      const auto all = all_patterns<std::uint8_t>();
      std::vector<std::uint8_t> wider(256 * size_bytes(wide));
      std::vector<std::uint8_t> back(256);
      cast(type, wide, all.data(), wider.data(), 256);
      cast(wide, type, wider.data(), back.data(), 256);
      std::vector<std::uint8_t> expected = all;
      if (type == DataType::kFloat8E5M2) {  // infinities saturate
        expected[0x7c] = 0x7b;
        expected[0xfc] = 0xfb;
      }
      EXPECT_EQ(oracle::first_difference(type, expected.data(), back.data(), 256), "")
          << name(type) << " " << name(wide);
    }
  }
}

TEST_P(Cast, SaturatesToFp8) {
  const float values[] = {447, 464, 465, 1e30f, INFINITY, 57344, 61440, 65536, -1e30f, -INFINITY};
  std::uint8_t got[10];
  cast(DataType::kFloat32, DataType::kFloat8E4M3, values, got, 10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(got[i], i < 8 ? 0x7e : 0xfe) << values[i];
  cast(DataType::kFloat32, DataType::kFloat8E5M2, values, got, 10);
  for (int i = 3; i < 10; ++i) EXPECT_EQ(got[i], i < 8 ? 0x7b : 0xfb) << values[i];
}

// Halfway between neighbours of each narrow type, and just beside; and numbers of all kinds.
TEST_P(Cast, RoundsToNearestEven) {
  std::mt19937 random(20);
  std::vector<float> floats;
  for (std::uint32_t upper = 0; upper < 1 << 16; upper += 3) {
    for (std::uint32_t lower : {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x8000, 0x8001, 0xffff}) {
      floats.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  for (int i = 0; i < 100000; ++i) {
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  for (DataType to : kFloats) check(DataType::kFloat32, to, floats);
}

TEST_P(Cast, RoundsFp64Once) {
  std::vector<double> doubles;
  const auto add_around = [&](double tie) {
    for (double value : {tie, std::nextafter(tie, 1e308), std::nextafter(tie, -1e308)}) {
      doubles.push_back(value);
      doubles.push_back(-value);
    }
  };
  for (int exponent = -150; exponent <= 128; ++exponent) {
    for (int places : {2, 3, 7, 10, 23}) {
      for (int odd : {0, 1}) {
        add_around(std::ldexp(1 + std::ldexp(odd + 0.5, -places), exponent));
      }
    }
  }
  for (double value : {0.0, 1e-320, 1e300, static_cast<double>(INFINITY)}) add_around(value);
  doubles.push_back(std::nan(""));
  for (DataType to : kFloats) check(DataType::kFloat64, to, doubles);
}

TEST_P(Cast, TakesEverySizeAndAlignment) {
  for (DataType from : kFloats) {
    for (DataType to : kFloats) {
      for (std::size_t count : {0, 1, 3, 15, 16, 17, 31, 33, 64, 1000, 2048, 4099}) {
        for (std::size_t misalignment : {0, 4, 1}) {
          const auto elements = oracle::random_elements(from, count, count);
          GuardedBuffer source(elements, 2 * misalignment);
          std::vector<std::uint8_t> expected(count * size_bytes(to));
          oracle::cast(from, to, elements.data(), expected.data(), count);
          GuardedBuffer target(std::vector<std::uint8_t>(expected.size()), misalignment);
          cast(from, to, source.data(), target.data(), count);
          ASSERT_EQ(oracle::first_difference(to, expected.data(), target.data(), count), "")
              << name(from) << " to " << name(to) << " count " << count;
          ASSERT_TRUE(target.is_guard_intact());
        }
      }
    }
  }
}

TEST_P(Cast, GivesTheSameBitsPastTheCacheAsInPieces) {
  for (DataType narrow : kNarrow) {
    for (bool is_widening : {true, false}) {
      const DataType from = is_widening ? narrow : DataType::kFloat32;
      const DataType to = is_widening ? DataType::kFloat32 : narrow;
      const std::size_t count = kernels::kStreamingBytes / size_bytes(to) + 77;
      const auto piece = oracle::random_elements(from, 4096, 9);
      std::vector<std::uint8_t> source;
      while (source.size() < count * size_bytes(from)) {
        source.insert(source.end(), piece.begin(), piece.end());
      }
      std::vector<std::uint8_t> expected(4096 * size_bytes(to));
      cast(from, to, piece.data(), expected.data(), 4096);
      for (std::size_t misalignment : {0, 4, 1}) {
        GuardedBuffer target(std::vector<std::uint8_t>(count * size_bytes(to)), misalignment);
        cast(from, to, source.data(), target.data(), count);
        for (std::size_t i = 0; i < count; i += 4096) {
          ASSERT_EQ(
              oracle::first_difference(to, expected.data(), target.data() + i * size_bytes(to),
                                       std::min<std::size_t>(4096, count - i)),
              "");
        }
        ASSERT_TRUE(target.is_guard_intact());
      }
    }
  }
}

TEST_P(Cast, MixedReductionsWidenTheSecondOperand) {
  for (DataType wire : kNarrow) {
    for (ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAvg}) {
      for (std::size_t count : {0, 1, 7, 65, 2048, 5001}) {
        for (std::size_t misalignment : {0, 4, 1}) {
          const auto a = oracle::random_elements(DataType::kFloat32, count, count);
          const auto b = oracle::random_elements(wire, count, count + 1);
          const std::int64_t divide_by = op == ReduceOp::kAvg ? 3 : 1;
          std::vector<std::uint8_t> expected(a.size());
          oracle::reduce_mixed(op, wire, a.data(), b.data(), expected.data(), count, divide_by);
          GuardedBuffer out(std::vector<std::uint8_t>(a.size()), misalignment);
          GuardedBuffer in_place(a, misalignment);
          GuardedBuffer operand(b, misalignment);
          reduce_mixed(op, wire, a.data(), operand.data(), out.data(), count, {divide_by});
          reduce_mixed(op, wire, in_place.data(), operand.data(), in_place.data(), count,
                       {divide_by});
          for (GuardedBuffer* got : {&out, &in_place}) {
            ASSERT_EQ(
                oracle::first_difference(DataType::kFloat32, expected.data(), got->data(), count),
                "")
                << name(wire) << " " << name(op) << " " << count;
            ASSERT_TRUE(got->is_guard_intact());
          }
        }
      }
    }
  }
}

TEST(CastDeathTest, RefusesTypesThatAreNoFloatingPointNumbers) {
  float value = 0;
  EXPECT_DEATH(cast(DataType::kInt32, DataType::kFloat32, &value, &value, 1), "is_floating_point");
  EXPECT_DEATH(reduce_mixed(ReduceOp::kSum, DataType::kFloat64, &value, &value, &value, 1), "wire");
}

}  // namespace
}  // namespace polyrail
