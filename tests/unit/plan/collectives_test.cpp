// Plans of every collective, proved by value and by order over ranks, rails, hosts, sizes, roots,
// uneven parts and placement; and what the planner promises of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>

#include "src/plan/blocks.hpp"
#include "src/plan/check.hpp"
#include "src/plan/generators.hpp"
#include "src/plan/layout.hpp"
#include "src/plan/planner.hpp"
#include "src/plan/text.hpp"
#include "tests/unit/plan/make.hpp"

namespace polyrail {
namespace {

using testing::make_equal;
using testing::make_topology;

constexpr Collective kCollectives[] = {
    Collective::kAllReduce,     Collective::kReduce,       Collective::kBroadcast,
    Collective::kReduceScatter, Collective::kAllGather,    Collective::kAllToAll,
    Collective::kGather,        Collective::kScatter,      Collective::kBarrier,
    Collective::kScan,          Collective::kExclusiveScan};

std::string test_name(const ::testing::TestParamInfo<Collective>& one) {
  std::string text;
  for (const char c : std::string(name(one.param))) {
    if (c != '_') text += c;
  }
  return text;
}

CollectiveSpec spec_of(Collective collective, int rank_count, std::uint64_t count,
                       bool is_in_place = false, int root = 0) {
  CollectiveSpec spec;
  spec.collective = collective;
  spec.rank_count = rank_count;
  spec.count = count;
  spec.type = DataType::kFloat32;
  spec.is_in_place = is_in_place;
  if (has_root(collective)) spec.root = root;
  return spec;
}

Topology unequal(int host_count) {
  std::vector<std::vector<testing::RailSpec>> rails;
  for (int h = 0; h < host_count; ++h) {
    rails.push_back({{800.0 - 100 * (h % 3), 20}, {200, 40}});
  }
  return make_topology(std::vector<int>(host_count, 1), rails);
}

Topology with_shm(const std::vector<int>& rank_counts) {
  const std::vector<testing::RailSpec> rails = {{800, 20}, {200, 40}, {40000, 1, RailKind::kShm}};
  return make_topology(rank_counts,
                       std::vector<std::vector<testing::RailSpec>>(rank_counts.size(), rails));
}

void expect_right(const Topology& topology, const CollectiveSpec& spec,
                  const std::string& algorithm = "") {
  PlanOptions options;
  options.algorithm = algorithm;
  const Result<Plan> plan = make_plan(topology, spec, options);
  ASSERT_TRUE(plan.is_ok()) << plan.status().message();
  const Status status = check(plan.value());
  ASSERT_TRUE(status.is_ok()) << name(spec.collective) << " by " << plan.value().algorithm << ", "
                              << spec.rank_count << " ranks, " << spec.count << " elements, "
                              << spec.counts.size() << " counts, root " << spec.root
                              << (spec.is_in_place ? ", in place: " : ", out of place: ")
                              << status.message();
  const Result<Plan> again = parse_plan(to_text(plan.value()));
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  ASSERT_EQ(again.value(), plan.value());
}

class EachCollective : public ::testing::TestWithParam<Collective> {};
// Those of them for which there is something to ask.
class EachReduction : public EachCollective {};
class EachWithParts : public EachCollective {};
class EachButAllReduce : public EachCollective {};
class EachThatMoves : public EachCollective {};

template <typename Condition>
std::vector<Collective> collectives_where(Condition&& condition) {
  std::vector<Collective> chosen;
  std::copy_if(std::begin(kCollectives), std::end(kCollectives), std::back_inserter(chosen),
               condition);
  return chosen;
}

TEST_P(EachCollective, IsRightByTheChosenPlan) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const Topology& topology :
         {make_equal(ranks, {{800, 20}, {200, 40}}), unequal(ranks), with_shm({ranks})}) {
      for (const std::uint64_t count : {0U, 1U, 7U, 1023U, 99991U, 4194304U}) {
        for (const bool is_in_place : {false, true}) {
          for (const int root : {0, ranks - 1}) {
            if (root > 0 && !has_root(GetParam())) continue;
            expect_right(topology, spec_of(GetParam(), ranks, count, is_in_place, root));
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(EachCollective, IsRightWithSeveralRanksPerHost) {
  for (const std::vector<int>& rank_counts :
       std::vector<std::vector<int>>{{2, 2}, {3, 1}, {1, 2, 3}, {2, 2, 2, 2}}) {
    const int ranks = std::accumulate(rank_counts.begin(), rank_counts.end(), 0);
    Topology interleaved = with_shm(rank_counts);
    std::reverse(interleaved.rank_hosts.begin(), interleaved.rank_hosts.end());
    std::swap(interleaved.rank_hosts[0], interleaved.rank_hosts[ranks - 1]);
    for (const Topology& topology : {with_shm(rank_counts), interleaved}) {
      for (const std::uint64_t count : {1U, 1000U, 500000U}) {
        for (const bool is_in_place : {false, true}) {
          expect_right(topology, spec_of(GetParam(), ranks, count, is_in_place, ranks / 2));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(EachReduction, IsRightInRankOrder) {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    for (const Topology& topology : {make_equal(ranks, {{800, 20}, {200, 40}}), unequal(ranks)}) {
      for (const std::uint64_t count : {1U, 1000U, 300000U}) {
        for (const bool is_in_place : {false, true}) {
          CollectiveSpec spec = spec_of(GetParam(), ranks, count, is_in_place, ranks / 2);
          spec.is_ordered = true;
          expect_right(topology, spec);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  CollectiveSpec spec = spec_of(GetParam(), 6, 30000);
  spec.is_ordered = true;
  Topology interleaved = with_shm({3, 3});
  interleaved.rank_hosts = {0, 1, 0, 1, 1, 0};
  expect_right(interleaved, spec);
}

TEST_P(EachCollective, IsRightByEveryAlgorithm) {
  for (const GeneratorInfo& info : generators(GetParam())) {
    for (int ranks = 2; ranks <= 8; ++ranks) {
      const bool is_power = (ranks & (ranks - 1)) == 0;
      if (info.is_doubling && !(is_power && has_parts(GetParam()))) continue;
      for (const std::uint64_t count : {0U, 1U, 777U, 200000U}) {
        for (const bool is_in_place : {false, true}) {
          expect_right(unequal(ranks), spec_of(GetParam(), ranks, count, is_in_place, 1),
                       std::string(info.name));
          if (HasFatalFailure()) return;
        }
      }
    }
    if (!has_blocks(GetParam()) || info.is_doubling) continue;
    for (const bool is_in_place : {false, true}) {
      expect_right(with_shm({1, 2, 3}), spec_of(GetParam(), 6, 50000, is_in_place, 4),
                   "two_level(" + std::string(info.name) + ")");
    }
  }
}

TEST_P(EachWithParts, IsRightWithUnevenParts) {
  std::mt19937 random(5);
  for (int ranks = 1; ranks <= 7; ++ranks) {
    for (int round = 0; round < 12; ++round) {
      CollectiveSpec spec = spec_of(GetParam(), ranks, 0, round % 2 == 1, ranks / 2);
      const int square = GetParam() == Collective::kAllToAll ? ranks : 1;
      for (int i = 0; i < ranks * square; ++i) {
        const std::uint64_t sizes[] = {0, 1, random() % 1000, random() % 200000};
        spec.counts.push_back(sizes[random() % 4]);
      }
      expect_right(unequal(ranks), spec);
      expect_right(make_equal(ranks, {{800, 20}, {200, 40}}), spec);
      if (ranks == 6) expect_right(with_shm({1, 2, 3}), spec);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(EachButAllReduce, SendsTheSameWhateverARankDoesInPlace) {
  const auto sent = [](const Plan& plan) {
    std::vector<std::string> steps;
    for (std::size_t rank = 0; rank < plan.schedules.size(); ++rank) {
      for (Step step : plan.schedules[rank].steps) {
        if (step.op != StepOp::kPut) continue;
        step.source = step.target = {Space::kInput, 0, step.source.bytes};
        step.after.clear();
        steps.push_back(to_text(step));
      }
    }
    return steps;
  };
  for (const std::uint64_t count : {1U, 5000U, 3000000U}) {
    const Topology topology = unequal(5);
    const auto in = make_plan(topology, spec_of(GetParam(), 5, count, true, 2), {});
    const auto out = make_plan(topology, spec_of(GetParam(), 5, count, false, 2), {});
    ASSERT_TRUE(in.is_ok() && out.is_ok());
    EXPECT_EQ(sent(in.value()), sent(out.value()));
  }
}

// At least so much of the limit by prediction: 64 MiB over unlike rails.
TEST_P(EachThatMoves, ComesNearTheLimitForLargeVectors) {
  constexpr std::uint64_t kElements = 16 << 20;
  for (const int ranks : {2, 4}) {
    std::uint64_t count = kElements;
    if (has_parts(GetParam())) count /= ranks;
    const auto plan = make_plan(make_equal(ranks, {{800, 50}, {200, 50}}),
                                spec_of(GetParam(), ranks, count, false, 1), {});
    ASSERT_TRUE(plan.is_ok());
    EXPECT_GT(plan.value().limit_us, 0.9 * 64 * 1048576 * 8 / 1000 / ranks);
    EXPECT_GE(plan.value().limit_us, 0.95 * plan.value().predicted_us)
        << plan.value().algorithm << " " << ranks;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachCollective, ::testing::ValuesIn(kCollectives), test_name);
INSTANTIATE_TEST_SUITE_P(
    All, EachReduction,
    ::testing::ValuesIn(collectives_where([](Collective one) { return reduces(one); })), test_name);
INSTANTIATE_TEST_SUITE_P(All, EachWithParts,
                         ::testing::ValuesIn(collectives_where([](Collective one) {
                           return has_parts(one);
                         })),
                         test_name);
// The ranks of an all_reduce must agree on being in place.
INSTANTIATE_TEST_SUITE_P(All, EachButAllReduce,
                         ::testing::ValuesIn(collectives_where([](Collective one) {
                           return one != Collective::kAllReduce;
                         })),
                         test_name);
INSTANTIATE_TEST_SUITE_P(All, EachThatMoves,
                         ::testing::ValuesIn(collectives_where([](Collective one) {
                           return one != Collective::kBarrier;
                         })),
                         test_name);

TEST(UnevenAllGather, ReachesItsLimitWhenOneRankHasNearlyAll) {
  CollectiveSpec spec = spec_of(Collective::kAllGather, 4, 0);
  spec.counts = {500000, 15000000, 600000, 566666};
  const auto plan = make_plan(make_equal(4, {{800, 50}, {200, 50}}), spec, {});
  ASSERT_TRUE(plan.is_ok());
  EXPECT_GE(plan.value().limit_us, 0.95 * plan.value().predicted_us) << plan.value().algorithm;
}

// What one rank of an uneven exchange knows is enough for its own schedule.
class UnevenExchange : public ::testing::TestWithParam<Collective> {};

TEST_P(UnevenExchange, NeedsOnlyOnesOwnCounts) {
  std::mt19937 random(3);
  CollectiveSpec spec = spec_of(GetParam(), 5, 0, false, 2);
  const bool is_square = GetParam() == Collective::kAllToAll;
  for (int i = 0; i < (is_square ? 25 : 5); ++i) {
    spec.counts.push_back(i % 4 == 0 ? i * 10 : random() % 100000);
  }
  const Topology topology = unequal(5);
  const auto whole = make_plan(topology, spec, {});
  ASSERT_TRUE(whole.is_ok());
  for (int rank = 0; rank < 5; ++rank) {
    CollectiveSpec own = spec;
    for (int other = 0; !is_square && other < 5; ++other) {
      if (other != rank && rank != spec.root) own.counts[other] = 0;
    }
    for (int from = 0; is_square && from < 5; ++from) {
      for (int to = 0; to < 5; ++to) {
        if (from != rank && to != rank) own.counts[from * 5 + to] = 0;
      }
    }
    const auto plan = make_plan(topology, own, {});
    ASSERT_TRUE(plan.is_ok());
    const auto& steps = plan.value().schedules[rank].steps;
    const auto& expected = whole.value().schedules[rank].steps;
    ASSERT_EQ(steps.size(), expected.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i].signal, expected[i].signal);
      EXPECT_EQ(steps[i].source, expected[i].source);
      EXPECT_EQ(steps[i].peer, expected[i].peer);
      EXPECT_EQ(steps[i].rail, expected[i].rail);
      // Where bytes land at the peer is the peer's affair.
      if (steps[i].op == StepOp::kPut) continue;
      EXPECT_EQ(steps[i].target, expected[i].target);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnevenExchange,
                         ::testing::Values(Collective::kAllToAll, Collective::kGather,
                                           Collective::kScatter),
                         test_name);

TEST(WireType, IsRightAndSendsNarrowElements) {
  for (const DataType wire : {DataType::kBfloat16, DataType::kFloat8E4M3}) {
    for (int ranks = 1; ranks <= 6; ++ranks) {
      for (const std::uint64_t count : {0U, 1U, 777U, 99991U, 3000000U}) {
        for (const bool is_in_place : {false, true}) {
          CollectiveSpec spec = spec_of(Collective::kAllReduce, ranks, count, is_in_place);
          spec.wire_type = wire;
          for (const char* algorithm : {"", "one_shot", "direct"}) {
            expect_right(unequal(ranks), spec, algorithm);
          }
          if (ranks == 6) expect_right(with_shm({1, 2, 3}), spec);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  CollectiveSpec spec = spec_of(Collective::kAllReduce, 4, 16 << 20);
  const auto plain = make_plan(make_equal(4, {{800, 50}, {200, 50}}), spec, {});
  spec.wire_type = DataType::kBfloat16;
  const auto narrow = make_plan(make_equal(4, {{800, 50}, {200, 50}}), spec, {});
  ASSERT_TRUE(plain.is_ok() && narrow.is_ok());
  EXPECT_LT(narrow.value().limit_us, 0.51 * plain.value().limit_us);
  EXPECT_GE(narrow.value().limit_us, 0.9 * narrow.value().predicted_us);
}

TEST(CheckSpec, RefusesWhatCannotBeRight) {
  CollectiveSpec spec = spec_of(Collective::kBroadcast, 3, 10);
  EXPECT_TRUE(check_spec(spec).is_ok());
  spec.root = 3;
  EXPECT_THAT(check_spec(spec).message(), ::testing::HasSubstr("root 3"));
  spec = spec_of(Collective::kAllGather, 3, 10);
  spec.counts = {1, 2};
  EXPECT_THAT(check_spec(spec).message(), ::testing::HasSubstr("2 counts instead of 3"));
  spec.counts = {1, 2, ~std::uint64_t{0}};
  EXPECT_THAT(check_spec(spec).message(), ::testing::HasSubstr("overflow"));
  spec = spec_of(Collective::kAllReduce, 2, 10);
  spec.counts = {1, 2};
  EXPECT_THAT(check_spec(spec).message(), ::testing::HasSubstr("no parts"));
}

}  // namespace
}  // namespace polyrail
