// copy: every size class, any alignment, nothing written beyond the end.
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.hpp"
#include "kernels/request.hpp"
#include "tests/unit/kernels/instruction_sets.hpp"

namespace polyrail {
namespace {

class Copy : public OnEachInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Kernels, Copy, instruction_sets(), instruction_set_name);

TEST_P(Copy, CopiesEveryByteAndNoOther) {
  constexpr std::size_t kMargin = 64;
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4097},
                            kernels::kStreamingBytes - 1, kernels::kStreamingBytes + 131}) {
    std::vector<std::uint8_t> source(bytes + kMargin);
    std::iota(source.begin(), source.end(), std::uint8_t{1});
    for (std::size_t misalignment : {0, 1, 16, 63}) {
      std::vector<std::uint8_t> target(bytes + 2 * kMargin, 0);
      copy(source.data() + misalignment, target.data() + 63 - misalignment, bytes);
      std::vector<std::uint8_t> expected(target.size(), 0);
      std::memcpy(expected.data() + 63 - misalignment, source.data() + misalignment, bytes);
      ASSERT_TRUE(target == expected) << bytes << " bytes, misaligned by " << misalignment;
    }
  }
}

TEST(CopyTest, TakesNullPointersForNoBytes) {
  copy(nullptr, nullptr, 0);
}

TEST(InstructionSet, HasAName) {
  EXPECT_STRNE(instruction_set(), "Unknown");
}

}  // namespace
}  // namespace polyrail
