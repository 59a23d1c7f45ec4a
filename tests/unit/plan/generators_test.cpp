// Every generator, proved by value and by order over ranks, rails, sizes and placement.
#include <gtest/gtest.h>

#include "src/plan/check.hpp"
#include "src/plan/planner.hpp"
#include "tests/unit/plan/make.hpp"

namespace polyrail {
namespace {

using testing::make_equal;
using testing::make_spec;
using testing::RailSpec;

class Generator : public ::testing::TestWithParam<const char*> {};

TEST_P(Generator, IsRightForAllRanksRailsSizesAndPlacements) {
  const std::vector<RailSpec> all_rails = {{1000, 20}, {250, 40}, {2500, 30}, {31.25, 80}};
  PlanOptions options;
  options.algorithm = GetParam();
  for (int rank_count = 2; rank_count <= 9; ++rank_count) {
    for (std::size_t rail_count = 1; rail_count <= all_rails.size(); ++rail_count) {
      const Topology topology =
          make_equal(rank_count, {all_rails.begin(), all_rails.begin() + rail_count});
      for (const std::uint64_t count : {0U, 1U, 3U, 1023U, 99991U, 4194304U}) {
        for (const bool is_in_place : {false, true}) {
          const CollectiveSpec spec = make_spec(rank_count, count, is_in_place);
          const Result<Plan> plan = make_plan(topology, spec, options);
          ASSERT_TRUE(plan.is_ok()) << plan.status().message();
          const Status status = check(plan.value());
          ASSERT_TRUE(status.is_ok())
              << rank_count << " ranks, " << rail_count << " rails, " << count << " elements, "
              << (is_in_place ? "in place" : "out of place") << ": " << status.message();
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Generator, ::testing::Values("one_shot", "direct", "ring"));

}  // namespace
}  // namespace polyrail
