// pack_rows and unpack_rows: which row goes where, of any length and alignment.
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.hpp"
#include "tests/unit/kernels/buffer.hpp"

namespace polyrail {
namespace {

constexpr std::int64_t kRows[] = {3, 0, 7, 4, 1};
constexpr std::size_t kSourceRows = 8;

std::vector<std::uint8_t> counted(std::size_t bytes) {
  std::vector<std::uint8_t> all(bytes);
  std::iota(all.begin(), all.end(), std::uint8_t{1});
  return all;
}

TEST(Rows, ArePackedInTheOrderOfTheList) {
  for (std::size_t row_bytes : {1, 3, 8, 64, 1000, 5001}) {
    const std::vector<std::uint8_t> source = counted(kSourceRows * row_bytes);
    GuardedBuffer target(std::vector<std::uint8_t>(std::size(kRows) * row_bytes), 3);
    pack_rows(source.data(), row_bytes, kRows, target.data());
    for (std::size_t i = 0; i < std::size(kRows) * row_bytes; ++i) {
      const std::size_t row = static_cast<std::size_t>(kRows[i / row_bytes]);
      ASSERT_EQ(target.data()[i], source[row * row_bytes + i % row_bytes]) << row_bytes;
    }
    EXPECT_TRUE(target.is_guard_intact());
  }
}

TEST(Rows, AreUnpackedToWhereTheyWerePackedFromAndNowhereElse) {
  for (std::size_t row_bytes : {1, 3, 8, 64, 1000, 5001}) {
    const std::vector<std::uint8_t> source = counted(kSourceRows * row_bytes);
    std::vector<std::uint8_t> packed(std::size(kRows) * row_bytes);
    pack_rows(source.data(), row_bytes, kRows, packed.data());
    GuardedBuffer target(std::vector<std::uint8_t>(source.size(), 0), 1);
    unpack_rows(packed.data(), row_bytes, kRows, target.data());
    std::vector<std::uint8_t> expected = source;
    for (std::size_t row : {2, 5, 6}) {  // not in the list
      std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(row * row_bytes), row_bytes,
                  std::uint8_t{0});
    }
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), target.data())) << row_bytes;
    EXPECT_TRUE(target.is_guard_intact());
  }
}

TEST(Rows, MayBeTakenMoreThanOnceAndNotAtAll) {
  const std::vector<std::uint8_t> source = {1, 2, 3, 4};
  const std::int64_t twice[] = {1, 1};
  std::uint8_t target[4] = {};
  pack_rows(source.data(), 2, twice, target);
  EXPECT_EQ(std::vector<std::uint8_t>(target, target + 4), (std::vector<std::uint8_t>{3, 4, 3, 4}));
  pack_rows(nullptr, 2, {}, nullptr);
  unpack_rows(nullptr, 0, twice, nullptr);
}

}  // namespace
}  // namespace polyrail
