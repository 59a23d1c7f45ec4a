// Numbers of messages: whole ones from the 31 bits that a header carries.
#include "src/exec/message_numbers.hpp"

#include <gtest/gtest.h>

namespace polyrail {
namespace {

TEST(MessageNumbers, AreFoundAgainNearThoseSeenLast) {
  for (const std::uint64_t near :
       {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{1} << 30, (std::uint64_t{1} << 31) - 1,
        std::uint64_t{1} << 31, std::uint64_t{1} << 32, (std::uint64_t{7} << 31) + 3}) {
    for (const std::int64_t ahead : {-100000, -3, -1, 0, 1, 2, 1000000}) {
      const std::int64_t number = static_cast<std::int64_t>(near) + ahead;
      if (number < 0) continue;
      const std::uint32_t operation = operation_of(static_cast<std::uint64_t>(number));
      EXPECT_NE(operation & Messages::kFlag, 0u);
      EXPECT_EQ(number_of(operation, near), number) << near << " and " << ahead;
    }
  }
}

TEST(MessageNumbers, BelowTheFirstAreNegative) {
  EXPECT_LT(number_of(operation_of((std::uint64_t{1} << 31) - 1), 0), 0);
}

}  // namespace
}  // namespace polyrail
