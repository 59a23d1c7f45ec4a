// reduce and reduce_many against the oracle: types, operators, sizes, alignment, aliasing.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
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

class Reduce : public OnEachInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Kernels, Reduce, instruction_sets(), instruction_set_name);

struct Case {
  DataType type;
  ReduceOp op;
  std::size_t count;
  std::size_t source_count = 2;
  std::vector<std::size_t> misalignments = {0};  // of target, source 0, source 1, ...; repeats
  int target_is_source = -1;                     // index, or -1: a buffer of its own
  std::int64_t divide_by = 1;

  std::string text() const {
    std::string all = std::string(name(type)) + " " + std::string(name(op)) + " count " +
                      std::to_string(count) + " sources " + std::to_string(source_count) +
                      " target_is_source " + std::to_string(target_is_source) + " divide_by " +
                      std::to_string(divide_by) + " misalignments";
    for (std::size_t m : misalignments) all += " " + std::to_string(m);
    return all;
  }
};

void check(const Case& c) {
  SCOPED_TRACE(c.text());
  const auto misalignment = [&](std::size_t i) {
    return c.misalignments[i % c.misalignments.size()];
  };
  std::vector<GuardedBuffer> buffers;
  for (std::size_t i = 0; i < c.source_count; ++i) {
    buffers.emplace_back(oracle::random_elements(c.type, c.count, 1000 * i + c.count),
                         misalignment(i + 1));
  }
  std::vector<const void*> sources;
  for (GuardedBuffer& buffer : buffers) sources.push_back(buffer.data());
  std::vector<std::uint8_t> expected(c.count * size_bytes(c.type));
  oracle::reduce(c.type, c.op, sources, expected.data(), c.count, c.divide_by);

  GuardedBuffer own(std::vector<std::uint8_t>(expected.size()), misalignment(0));
  GuardedBuffer& target = c.target_is_source < 0 ? own : buffers[c.target_is_source];
  if (c.source_count == 2) {
    reduce(c.type, c.op, sources[0], sources[1], target.data(), c.count, {c.divide_by});
  } else {
    reduce_many(c.type, c.op, sources, target.data(), c.count, {c.divide_by});
  }
  ASSERT_EQ(oracle::first_difference(c.type, expected.data(), target.data(), c.count), "");
  ASSERT_TRUE(own.is_guard_intact());
  for (const GuardedBuffer& buffer : buffers) ASSERT_TRUE(buffer.is_guard_intact());
}

template <typename F>
void for_each_type_and_op(F f) {
  for (DataType type : kAllDataTypes) {
    for (ReduceOp op : kAllReduceOps) {
      if (!can_reduce(type, op) || op == ReduceOp::kUser) continue;
      f(type, op);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}
// Without names for the same computation: averages and the like.
template <typename F>
void for_each_computation(F f) {
  for_each_type_and_op([&](DataType type, ReduceOp op) {
    const bool is_sum_too = op == ReduceOp::kAvg || op > ReduceOp::kMinLoc;
    if (!is_sum_too) f(type, op);
  });
}
bool can_divide(DataType type, ReduceOp op) {
  return op <= ReduceOp::kAvg && type != DataType::kBool;
}

const std::size_t kCounts[] = {0, 1, 2, 7, 8, 63, 64, 65, 1000, 4097};

TEST_P(Reduce, GivesTheOraclesBitsForEverySize) {
  for_each_type_and_op([](DataType type, ReduceOp op) {
    for (std::size_t count : kCounts) check({.type = type, .op = op, .count = count});
  });
}

TEST_P(Reduce, GivesTheOraclesBitsForEverySizeAroundTheVectorLength) {
  for_each_computation([](DataType type, ReduceOp op) {
    for (std::size_t count = 0; count < 150; ++count) {
      check({.type = type, .op = op, .count = count, .misalignments = {4, 2, 8}});
    }
  });
}

TEST_P(Reduce, TakesAnyAlignment) {
  const std::vector<std::size_t> misalignments[] = {{8, 0, 0},  {0, 8, 0}, {0, 0, 8}, {16, 32, 48},
                                                    {4, 60, 2}, {1, 1, 1}, {3, 0, 5}, {0, 63, 7}};
  for_each_computation([&](DataType type, ReduceOp op) {
    for (const auto& m : misalignments) {
      for (std::size_t count : {1, 7, 65, 1000}) {
        check({.type = type, .op = op, .count = count, .misalignments = m});
      }
    }
  });
}

TEST_P(Reduce, WorksInPlaceOverEitherOperand) {
  for_each_computation([](DataType type, ReduceOp op) {
    for (int target : {0, 1}) {
      for (std::size_t count : kCounts) {
        check({.type = type, .op = op, .count = count, .target_is_source = target});
        check({.type = type,
               .op = op,
               .count = count,
               .misalignments = {0, 20, 3},
               .target_is_source = target});
      }
    }
  });
}

TEST_P(Reduce, TakesTheSameBufferForBothOperands) {
  for_each_computation([](DataType type, ReduceOp op) {
    const auto elements = oracle::random_elements(type, 333, 7);
    GuardedBuffer buffer(elements, 4);
    const void* const sources[] = {elements.data(), elements.data()};
    std::vector<std::uint8_t> expected(elements.size());
    oracle::reduce(type, op, sources, expected.data(), 333, 1);
    reduce(type, op, buffer.data(), buffer.data(), buffer.data(), 333);
    ASSERT_EQ(oracle::first_difference(type, expected.data(), buffer.data(), 333), "");
  });
}

TEST_P(Reduce, DividesAfterTheLastOperand) {
  for_each_type_and_op([](DataType type, ReduceOp op) {
    if (!can_divide(type, op)) return;
    for (std::int64_t divide_by : {2, 3, 5, 7, 8, 64, 1000, 1 << 20}) {
      for (std::size_t count : {5, 1000}) {
        check({.type = type, .op = op, .count = count, .divide_by = divide_by});
        check({.type = type,
               .op = op,
               .count = count,
               .misalignments = {2},
               .target_is_source = 1,
               .divide_by = divide_by});
      }
    }
  });
}

TEST_P(Reduce, DividesByMoreThanTheElementsTypeHolds) {
  for (std::int64_t divide_by :
       {std::int64_t{1} << 31, (std::int64_t{1} << 31) + 1, std::int64_t{1} << 40, INT64_MAX}) {
    check({.type = DataType::kInt32, .op = ReduceOp::kMin, .count = 100, .divide_by = divide_by});
    check({.type = DataType::kInt64, .op = ReduceOp::kMin, .count = 100, .divide_by = divide_by});
    check({.type = DataType::kUint8, .op = ReduceOp::kSum, .count = 100, .divide_by = divide_by});
    check({.type = DataType::kUint64, .op = ReduceOp::kMax, .count = 100, .divide_by = divide_by});
  }
}

TEST_P(Reduce, IntegersDivideTowardsZero) {
  const std::int32_t a[] = {-7, 7, -8, INT32_MIN, INT32_MAX, -1};
  const std::int32_t b[] = {0, 0, 0, 0, 0, 0};
  std::int32_t out[6];
  reduce(DataType::kInt32, ReduceOp::kAvg, a, b, out, 6, {2});
  const std::vector<std::int32_t> expected = {-3, 3, -4, INT32_MIN / 2, INT32_MAX / 2, 0};
  EXPECT_EQ(std::vector<std::int32_t>(out, out + 6), expected);
}

TEST_P(Reduce, IntegersWrap) {
  const std::int64_t a[] = {INT64_MAX, INT64_MIN, INT64_MAX};
  const std::int64_t b[] = {1, -1, 2};
  std::int64_t out[3];
  reduce(DataType::kInt64, ReduceOp::kSum, a, b, out, 3);
  EXPECT_EQ(out[0], INT64_MIN);
  EXPECT_EQ(out[1], INT64_MAX);
  reduce(DataType::kInt64, ReduceOp::kProd, a, b, out, 3);
  EXPECT_EQ(out[1], INT64_MIN);
  EXPECT_EQ(out[2], -2);
}

TEST_P(Reduce, CombinesOneToManySourcesInTheOrderGiven) {
  for_each_computation([](DataType type, ReduceOp op) {
    for (std::size_t source_count = 1; source_count <= 12; ++source_count) {
      for (std::size_t count : {0, 1, 7, 63, 65, 1000}) {
        check({.type = type, .op = op, .count = count, .source_count = source_count});
      }
      const int last = static_cast<int>(source_count) - 1;
      check({.type = type,
             .op = op,
             .count = 517,
             .source_count = source_count,
             .misalignments = {0, 2, 12, 1},
             .target_is_source = last,
             .divide_by = can_divide(type, op) ? 3 : 1});
    }
  });
}

TEST_P(Reduce, CombinesMoreSourcesThanAreReadAtOnce) {
  for (DataType type : kAllDataTypes) {
    if (!can_reduce(type, ReduceOp::kSum)) continue;
    for (std::size_t source_count : {16, 17, 25, 40}) {
      check({.type = type,
             .op = ReduceOp::kSum,
             .count = 20001,
             .source_count = source_count,
             .misalignments = {0, 24, 2},
             .target_is_source = 16 - static_cast<int>(source_count % 17),
             .divide_by = can_divide(type, ReduceOp::kSum) ? 40 : 1});
    }
    if (can_reduce(type, ReduceOp::kMax)) {
      check({.type = type, .op = ReduceOp::kMax, .count = 20001, .source_count = 30});
    }
  }
}

std::vector<std::uint8_t> repeated(const std::vector<std::uint8_t>& piece, std::size_t bytes) {
  std::vector<std::uint8_t> all(bytes);
  for (std::size_t i = 0; i < bytes; i += piece.size()) {
    std::memcpy(&all[i], piece.data(), std::min(piece.size(), bytes - i));
  }
  return all;
}

TEST_P(Reduce, GivesTheSameBitsPastTheCacheAsInPieces) {
  for (DataType type : kAllDataTypes) {
    if (!can_reduce(type, ReduceOp::kSum)) continue;
    const std::size_t size = size_bytes(type);
    const std::size_t count = kernels::kStreamingBytes / size + 77;
    const auto a = repeated(oracle::random_elements(type, 10007, 1), count * size);
    const auto b = repeated(oracle::random_elements(type, 1009, 2), count * size);
    std::vector<std::uint8_t> pieces(count * size);
    constexpr std::size_t kPiece = 4096;
    for (std::size_t i = 0; i < count; i += kPiece) {
      const std::size_t at = i * size;
      reduce(type, ReduceOp::kSum, &a[at], &b[at], &pieces[at], std::min(kPiece, count - i));
    }
    for (std::size_t misalignment : {0, 8, 1}) {
      GuardedBuffer target(std::vector<std::uint8_t>(count * size), misalignment);
      reduce(type, ReduceOp::kSum, a.data(), b.data(), target.data(), count);
      ASSERT_EQ(oracle::first_difference(type, pieces.data(), target.data(), count), "");
      ASSERT_TRUE(target.is_guard_intact());
    }
  }
}

TEST_P(Reduce, UnsignedIntegersAboveTheSignedOnesAreTheLargest) {
  const std::vector<std::uint64_t> a(70, UINT64_MAX);
  const std::vector<std::uint64_t> b(70, 1);
  std::vector<std::uint64_t> got(70);
  for (DataType type :
       {DataType::kUint8, DataType::kUint16, DataType::kUint32, DataType::kUint64}) {
    reduce(type, ReduceOp::kMax, a.data(), b.data(), got.data(), 70 * 8 / size_bytes(type));
    EXPECT_EQ(got, a) << name(type);
  }
}

TEST_P(Reduce, EveryByteOfBoolButZeroIsTrue) {
  std::vector<std::uint8_t> a(256 * 256);
  std::vector<std::uint8_t> b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint8_t>(i);
    b[i] = static_cast<std::uint8_t>(i >> 8);
  }
  for (ReduceOp op : kAllReduceOps) {
    if (!can_reduce(DataType::kBool, op) || op == ReduceOp::kUser) continue;
    std::vector<std::uint8_t> expected(a.size());
    std::vector<std::uint8_t> got(a.size());
    const void* const sources[] = {a.data(), b.data()};
    oracle::reduce(DataType::kBool, op, sources, expected.data(), a.size(), 1);
    reduce(DataType::kBool, op, a.data(), b.data(), got.data(), a.size());
    EXPECT_TRUE(got == expected) << name(op);
  }
}

TEST_P(Reduce, PairsTakeTheSmallerIndexOfEqualValuesAndOfNaN) {
  struct Pair {
    float value;
    std::int32_t index;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Pair a[] = {{1, 5}, {1, 5}, {2, 9}, {0.0f, 7}, {nan, 9}, {nan, 9}, {3, 1}};
  const Pair b[] = {{1, 3}, {1, 7}, {1, 1}, {-0.0f, 2}, {9, 1}, {nan, 4}, {nan, 8}};
  Pair got[7];
  reduce(DataType::kFloat32Index, ReduceOp::kMaxLoc, a, b, got, 7);
  const std::int32_t largest[] = {3, 5, 9, 2, 9, 4, 8};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(got[i].index, largest[i]) << i;
  reduce(DataType::kFloat32Index, ReduceOp::kMinLoc, a, b, got, 7);
  const std::int32_t smallest[] = {3, 5, 1, 2, 9, 4, 8};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(got[i].index, smallest[i]) << i;
}

TEST(ReduceMany, OneSourceInPlaceLeavesItAlone) {
  auto elements = oracle::random_elements(DataType::kFloat16, 100, 3);
  const auto before = elements;
  const void* const sources[] = {elements.data()};
  reduce_many(DataType::kFloat16, ReduceOp::kSum, sources, elements.data(), 100);
  EXPECT_EQ(elements, before);
}

TEST(ReduceDeathTest, RefusesNoSourcesAndBadDivisors) {
  float value = 0;
  EXPECT_DEATH(reduce_many(DataType::kFloat32, ReduceOp::kSum, {}, &value, 1), "sources");
  EXPECT_DEATH(reduce(DataType::kFloat32, ReduceOp::kSum, &value, &value, &value, 1, {0}),
               "divide_by");
  EXPECT_DEATH(reduce(DataType::kFloat32, ReduceOp::kBitAnd, &value, &value, &value, 1),
               "can_reduce");
  EXPECT_DEATH(reduce(DataType::kFloat32, ReduceOp::kUser, &value, &value, &value, 1), "kUser");
  EXPECT_DEATH(reduce(DataType::kInt32, ReduceOp::kBitAnd, &value, &value, &value, 1, {2}),
               "divide_by");
}

}  // namespace
}  // namespace polyrail
