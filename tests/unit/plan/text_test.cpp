// Plans as text: round trips, errors that name the line, hostile input.
#include "src/plan/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "src/plan/check.hpp"
#include "src/plan/planner.hpp"
#include "tests/unit/plan/make.hpp"

namespace polyrail {
namespace {

using ::testing::HasSubstr;
using testing::make_equal;
using testing::make_spec;
using ::testing::StartsWith;

Plan made(int rank_count, std::uint64_t count, const std::string& algorithm, bool is_in_place) {
  PlanOptions options;
  options.algorithm = algorithm;
  const Topology topology = make_equal(rank_count, {{1000, 20}, {300, 31.7}});
  CollectiveSpec spec = make_spec(rank_count, count, is_in_place, DataType::kBfloat16);
  spec.op = ReduceOp::kAvg;
  return make_plan(topology, spec, options).value();
}

TEST(PlanText, ReadsBackWhatItPrints) {
  for (const char* algorithm : {"one_shot_staged", "direct", "ring", "recursive_doubling",
                                "halving_doubling", "tree", "two_level(ring)", ""}) {
    for (const bool is_in_place : {false, true}) {
      for (const std::uint64_t count : {0U, 1U, 100003U}) {
        const Plan plan = made(5, count, algorithm, is_in_place);
        const Result<Plan> back = parse_plan(to_text(plan));
        ASSERT_TRUE(back.is_ok()) << back.status().message();
        EXPECT_EQ(back.value(), plan);
      }
    }
  }
}

TEST(PlanText, KeepsOddNamesAndNumbers) {
  Plan plan = made(2, 10, "direct", false);
  plan.algorithm = "an \"odd\" # name [0-3]\n";
  plan.predicted_us = 1.0 / 3;
  plan.limit_us = 1e-7;
  EXPECT_EQ(parse_plan(to_text(plan)).value(), plan);
  plan.algorithm.clear();
  EXPECT_EQ(parse_plan(to_text(plan)).value(), plan);
}

TEST(PlanText, LooksLikeItsDescription) {
  const Topology topology = make_equal(2, {{1000, 20}});
  Plan plan = make_plan(topology, make_spec(2, 1024), {}).value();
  plan.predicted_us = 52.5;
  plan.limit_us = 36;
  EXPECT_EQ(to_text(plan),
            "polyrail_plan 1\n"
            "all_reduce count 1024 type float op sum ranks 2\n"
            "algorithm direct planes 1 predicted_us 52.5 limit_us 36\n"
            "rank 0 scratch 0\n"
            "  0 put 1 rail 0 signal 0 input+0:4096 -> output+0:4096\n"
            "  1 wait 1 rail 0 signal 0 -> output+0:4096\n"
            "  2 reduce input+0:4096 output+0:4096 -> output+0:4096 final after 1\n"
            "rank 1 scratch 0\n"
            "  0 wait 0 rail 0 signal 0 -> output+0:4096\n"
            "  1 put 0 rail 0 signal 0 input+0:4096 -> output+0:4096\n"
            "  2 reduce output+0:4096 input+0:4096 -> output+0:4096 final after 0\n");
}

TEST(PlanText, SkipsCommentsAndEmptyLines) {
  const Plan plan = made(2, 10, "direct", false);
  EXPECT_EQ(parse_plan("# a plan\n\n" + to_text(plan) + "\n# the end").value(), plan);
}

struct BadLine {
  const char* from;
  const char* to;
  const char* message;
};

TEST(PlanText, NamesTheLineAndWhatWasExpected) {
  const std::string good = to_text(made(2, 1000, "direct", false));
  for (const BadLine& bad : {
           BadLine{"polyrail_plan 1", "polyrail_plan 2", "line 1: expected \"1\", found \"2\""},
           BadLine{"all_reduce", "all_reduces", "line 2: expected a collective"},
           BadLine{"count 1000", "count -1", "line 2: expected a number of elements, found \"-1\""},
           BadLine{"count 1000", "count 99999999999999999999", "expected a number of elements"},
           BadLine{"type bfloat16", "type quaternion", "line 2: expected an element type"},
           BadLine{"op avg", "op mean", "line 2: expected an operator"},
           BadLine{"ranks 2", "ranks 0", "line 2: expected a number of ranks"},
           BadLine{"ranks 2", "ranks 3", "the plan ends after 2 of 3 ranks"},
           BadLine{"limit_us", "limit_us nan #", "line 3: expected a time in us, found \"nan\""},
           BadLine{"rank 0", "rank 1", "line 4: expected \"0\", found \"1\""},
           BadLine{"rank 0 scratch 0", "", "line 5: expected \"rank 0\""},
           BadLine{"  0 put", "  1 put", "line 5: expected \"0\", found \"1\""},
           BadLine{"0 put", "0 send", "line 5: expected put, wait, reduce or copy"},
           BadLine{"put 1", "put one", "line 5: expected the peer's rank, found \"one\""},
           BadLine{"->", "to", "line 5: expected \"->\", found \"to\""},
           BadLine{"input+0", "inputs+0", "line 5: expected a source such as"},
           BadLine{"input+0", "input0", "line 5: expected a source such as"},
           BadLine{" final", " final final", "expected the end of the line, found \"final\""},
           BadLine{" after ", " after x ", "expected the number of a step, found \"x\""},
       }) {
    std::string text = good;
    const std::size_t at = text.find(bad.from);
    ASSERT_NE(at, std::string::npos) << bad.from;
    text.replace(at, std::string(bad.from).size(), bad.to);
    const Result<Plan> plan = parse_plan(text);
    ASSERT_FALSE(plan.is_ok()) << bad.to;
    EXPECT_THAT(plan.status().message(), StartsWith("line "));
    EXPECT_THAT(plan.status().message(), HasSubstr(bad.message));
  }
  EXPECT_THAT(parse_plan("").status().message(), HasSubstr("ends after 0 of 1 ranks"));
}

// Whatever the text, it is a plan or an error, and a plan can be checked without harm.
TEST(PlanText, SurvivesMutatedInput) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string good = to_text(made(3, 5000, "ring", true));
  const std::string letters = "0123456789 +:->\n\"\\#[]{}aputrnkfile\xff";
  const auto below = [&](std::size_t limit) { return random() % limit; };
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (std::size_t change = below(6) + 1; change > 0 && !text.empty(); --change) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = letters[below(letters.size())];
          break;
        case 1:
          text.insert(at, 1, letters[below(letters.size())]);
          break;
        case 2:
          text.erase(at, below(80) + 1);
          break;
        default:
          text.insert(at, good.substr(below(good.size()), below(200)));
      }
    }
    const Result<Plan> plan = parse_plan(text);
    if (!plan.is_ok()) {
      EXPECT_THAT(plan.status().message(), HasSubstr("line "));
      continue;
    }
    if (!check(plan.value()).is_ok()) continue;
    EXPECT_EQ(parse_plan(to_text(plan.value())).value(), plan.value());
  }
}

}  // namespace
}  // namespace polyrail
