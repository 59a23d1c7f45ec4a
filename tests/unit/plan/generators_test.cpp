// Every generator, proved by value and by order over ranks, rails, chunks, sizes and placement.
#include <gtest/gtest.h>

#include <numeric>

#include "src/plan/check.hpp"
#include "src/plan/compose.hpp"
#include "tests/unit/plan/make.hpp"

namespace polyrail {
namespace {

using testing::make_spec;

std::string test_name(const ::testing::TestParamInfo<std::string>& one) {
  std::string text;
  for (const char c : one.param) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) text += c;
  }
  return text;
}

// Rank r lives on hosts[r]; `rail_count` strands of unlike size, plane 0 within hosts.
Recipe recipe_of(const std::string& algorithm, const CollectiveSpec& spec, int rail_count,
                 int chunk_count, const std::vector<int>& hosts) {
  Recipe recipe;
  recipe.algorithm = parse_algorithm(spec.collective, algorithm).value();
  recipe.chunk_count = chunk_count;
  recipe.ranks.resize(spec.rank_count);
  std::iota(recipe.ranks.begin(), recipe.ranks.end(), 0);
  recipe.hosts = hosts;
  std::vector<double> shares(rail_count);
  std::iota(shares.begin(), shares.end(), 1.0);
  const std::vector<Range> ranges = cut_by_weight({0, spec.bytes()}, shares, size_bytes(spec.type));
  for (int rail = 0; rail < rail_count; ++rail) {
    Route route = Route::over(rail + 1, spec.rank_count);
    for (int a = 0; a < spec.rank_count; ++a) {
      for (int b = 0; b < spec.rank_count; ++b) {
        if (hosts[a] == hosts[b]) route.planes[a * spec.rank_count + b] = 0;
      }
    }
    recipe.strands.push_back({rail + 1, ranges[rail], route, {}});
  }
  return recipe;
}

std::vector<int> one_rank_per_host(int rank_count) {
  std::vector<int> hosts(rank_count);
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

void expect_right(const CollectiveSpec& spec, const Recipe& recipe) {
  const Plan plan = compose(spec, static_cast<int>(recipe.strands.size()) + 1, recipe);
  const Status status = check(plan);
  ASSERT_TRUE(status.is_ok()) << recipe.algorithm.name() << ", " << spec.rank_count << " ranks, "
                              << recipe.strands.size() << " rails, " << recipe.chunk_count
                              << " chunks, " << spec.count << " elements, "
                              << (spec.is_in_place ? "in place: " : "out of place: ")
                              << status.message();
}

class EachGenerator : public ::testing::TestWithParam<std::string> {};

TEST_P(EachGenerator, IsRightForAllRanksRailsSizesAndPlacements) {
  for (int rank_count = 2; rank_count <= 9; ++rank_count) {
    for (int rail_count = 1; rail_count <= 4; ++rail_count) {
      for (const std::uint64_t count : {0U, 1U, 3U, 1023U, 99991U, 4194304U}) {
        for (const bool is_in_place : {false, true}) {
          const CollectiveSpec spec = make_spec(rank_count, count, is_in_place);
          expect_right(spec,
                       recipe_of(GetParam(), spec, rail_count, 1, one_rank_per_host(rank_count)));
        }
      }
    }
  }
}

TEST_P(EachGenerator, IsRightInChunks) {
  for (int rank_count = 2; rank_count <= 6; ++rank_count) {
    for (const int chunk_count : {2, 3, 8}) {
      for (const std::uint64_t count : {5U, 99991U}) {
        for (const bool is_in_place : {false, true}) {
          const CollectiveSpec spec = make_spec(rank_count, count, is_in_place);
          expect_right(spec,
                       recipe_of(GetParam(), spec, 2, chunk_count, one_rank_per_host(rank_count)));
        }
      }
    }
  }
}

TEST_P(EachGenerator, IsRightForElementsOfAnySize) {
  for (const DataType type : kAllDataTypes) {
    if (!can_reduce(type, ReduceOp::kSum)) continue;
    const CollectiveSpec spec = make_spec(5, 777, false, type);
    expect_right(spec, recipe_of(GetParam(), spec, 3, 2, one_rank_per_host(5)));
  }
}

TEST_P(EachGenerator, IsRightForUnequalParts) {
  for (const bool is_in_place : {false, true}) {
    const CollectiveSpec spec = make_spec(4, 100000, is_in_place);
    Recipe recipe = recipe_of(GetParam(), spec, 2, 1, one_rank_per_host(4));
    recipe.strands[0].weights = {0, 1, 3, 0.5};
    recipe.strands[1].weights = {1, 0, 0, 0};
    expect_right(spec, recipe);
  }
}

TEST_P(EachGenerator, IsRightOnTwoLevelsWithUnequalHosts) {
  const std::vector<std::vector<int>> placements = {
      {0, 0, 1},          {0, 0, 1, 1},       {0, 1, 1, 1},          {0, 1, 0, 1, 2},
      {0, 0, 0, 1, 1, 2}, {2, 2, 0, 0, 1, 1}, {0, 0, 1, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 2, 2, 2}};
  for (const std::vector<int>& hosts : placements) {
    for (const char* levels : {"two_level(", "leaders("}) {
      for (const std::uint64_t count : {0U, 1U, 7U, 99991U}) {
        for (const int chunk_count : {1, 3}) {
          for (const bool is_in_place : {false, true}) {
            const auto spec = make_spec(static_cast<int>(hosts.size()), count, is_in_place);
            expect_right(spec, recipe_of(levels + GetParam() + ")", spec, 2, chunk_count, hosts));
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachGenerator,
                         ::testing::Values("one_shot", "one_shot_staged", "direct", "ring",
                                           "recursive_doubling", "halving_doubling", "tree"),
                         test_name);

// What the comments in generators.hpp promise, in bytes per rank of a vector of S bytes.
struct Promise {
  std::string algorithm;
  int rank_count;
  double most_sent;  // times S, by any rank
  double scratch;    // times S, out of place
  double scratch_in_place;
};

class Promises : public ::testing::TestWithParam<Promise> {};

TEST_P(Promises, AreKept) {
  const Promise& promise = GetParam();
  for (const bool is_in_place : {false, true}) {
    const CollectiveSpec spec = make_spec(promise.rank_count, 3 * 5 * 7 * 64 * 1024, is_in_place);
    const Plan plan = compose(
        spec, 2, recipe_of(promise.algorithm, spec, 1, 1, one_rank_per_host(promise.rank_count)));
    const auto size = static_cast<double>(spec.bytes());
    for (const Schedule& schedule : plan.schedules) {
      double sent = 0;
      for (const Step& step : schedule.steps) {
        if (step.op == StepOp::kPut) sent += static_cast<double>(step.source.bytes);
      }
      EXPECT_LE(sent, promise.most_sent * size * 1.001);
      EXPECT_LE(static_cast<double>(schedule.scratch_bytes),
                (is_in_place ? promise.scratch_in_place : promise.scratch) * size * 1.001 + 64);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Promises,
    ::testing::Values(Promise{"one_shot", 2, 1, 0, 1}, Promise{"one_shot", 5, 4, 3, 4},
                      Promise{"one_shot_staged", 2, 1, 0, 2}, Promise{"direct", 2, 1, 0, 1},
                      Promise{"direct", 5, 8.0 / 5, 3.0 / 5, 8.0 / 5}, Promise{"ring", 2, 1, 0, 1},
                      Promise{"ring", 5, 8.0 / 5, 3.0 / 5, 1},
                      Promise{"recursive_doubling", 4, 2, 1, 2},
                      Promise{"recursive_doubling", 5, 3, 2, 3},
                      Promise{"halving_doubling", 8, 14.0 / 8, 6.0 / 8, 11.0 / 8},
                      Promise{"tree", 7, 3, 2, 2}));

}  // namespace
}  // namespace polyrail
