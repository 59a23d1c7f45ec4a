// Cutting ranges: nothing lost, whole elements, well aligned, fair.
#include "src/plan/range.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace polyrail {
namespace {

TEST(CutByWeight, CoversTheRangeWithAdjoiningWholeElements) {
  for (const std::uint64_t element : {2U, 4U, 8U}) {
    for (const std::uint64_t count : {0U, 1U, 2U, 100U, 5000U, 1000003U}) {
      const Range range{element * 13, element * count};
      const std::vector<Range> pieces = cut_by_weight(range, {1, 0, 2.5, 0.01, 0}, element);
      std::uint64_t at = range.offset_bytes;
      for (const Range& piece : pieces) {
        EXPECT_EQ(piece.offset_bytes, at);
        EXPECT_EQ(piece.bytes % element, 0U);
        at = piece.end();
      }
      EXPECT_EQ(at, range.end());
      EXPECT_EQ(pieces[1].bytes, 0U);
      EXPECT_EQ(pieces[4].bytes, 0U);
    }
  }
}

TEST(CutByWeight, CutsAtMultiplesOf256BytesWhereItIsFair) {
  for (const Range& piece : cut_by_weight({0, 1 << 20}, {3, 2, 2}, 4)) {
    EXPECT_EQ(piece.offset_bytes % 256, 0U);
  }
  for (const Range& piece : cut_by_weight({0, 3 * 4096}, {1, 1, 1}, 4)) {
    EXPECT_EQ(piece.offset_bytes % 64, 0U);
  }
}

TEST(CutByWeight, MissesTheWeightsByLittle) {
  const std::vector<double> weights = {1, 10, 3};
  for (const std::uint64_t bytes : {30000U, 1000000U, 50000000U}) {
    const std::vector<Range> pieces = cut_by_weight({0, bytes}, weights, 4);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double ideal = static_cast<double>(bytes) * weights[i] / 14;
      EXPECT_LE(std::abs(static_cast<double>(pieces[i].bytes) - ideal), 256);
    }
  }
}

TEST(CutEvenly, GivesSomeNothingIfThereAreFewerElements) {
  const std::vector<Range> pieces = cut_evenly({0, 12}, 9, 4);
  std::uint64_t sum = 0;
  for (const Range& piece : pieces) {
    EXPECT_LE(piece.bytes, 4U);
    sum += piece.bytes;
  }
  EXPECT_EQ(sum, 12U);
}

}  // namespace
}  // namespace polyrail
