// The check of the perf tests: it must see what is wrong, not only what is right.
#include "perf/tools/perf_case.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace polyrail::perf {
namespace {

const PerfTest& test_named(std::string_view name) {
  for (const PerfTest& test : kPerfTests) {
    if (test.name == name) return test;
  }
  ADD_FAILURE() << name;
  return kPerfTests[0];
}

// A rank alone: every result is its input, so that copying makes a right one.
class OneRank {
 public:
  explicit OneRank(std::string_view name)
      : case_(test_named(name), options_, DataType::kInt32, ReduceOp::kSum, 0, 4000, 0, 1),
        memory_(4000) {
    case_.fill(memory_.data(), false, 2);
  }
  std::uint64_t wrong(std::uint64_t seed = 2) const {
    return case_.count_wrong_output(memory_.data(), false, seed);
  }
  std::byte& byte(std::size_t i) { return memory_[i]; }
  void erase() { case_.erase(memory_.data()); }

 private:
  PerfOptions options_;
  PerfCase case_;
  std::vector<std::byte> memory_;
};

TEST(PerfCase, CountsEachElementThatIsWrong) {
  for (const PerfTest& test : kPerfTests) {
    if (test.collective == Collective::kBarrier) continue;
    OneRank rank(test.name);
    EXPECT_EQ(rank.wrong(), 0) << test.name;
    rank.byte(5) ^= std::byte{1};
    rank.byte(6) ^= std::byte{1};
    rank.byte(3999) ^= std::byte{64};
    EXPECT_EQ(rank.wrong(), 2) << test.name;
    rank.erase();
    EXPECT_EQ(rank.wrong(), 1000) << test.name;
  }
}

TEST(PerfCase, SeesWhatAnEarlierCallLeftBehind) {
  for (const PerfTest& test : kPerfTests) {
    if (test.collective == Collective::kBarrier) continue;
    EXPECT_GT(OneRank(test.name).wrong(1), 500) << test.name;
  }
}

TEST(PerfCase, SeesBlocksOfRanksThatChangedPlaces) {
  const PerfOptions options;
  std::vector<std::byte> memory(1200);
  for (int rank = 0; rank < 3; ++rank) {
    const PerfCase one(test_named("all_gather"), options, DataType::kFloat32, ReduceOp::kSum, 0,
                       1200, rank, 3);
    one.fill(memory.data() + 400 * ((rank + 1) % 3), false, 2);
  }
  const PerfCase one(test_named("all_gather"), options, DataType::kFloat32, ReduceOp::kSum, 0, 1200,
                     0, 3);
  EXPECT_EQ(one.count_wrong_output(memory.data(), false, 2), 300);
}

TEST(PerfCase, GivesRankZeroItsFraction) {
  PerfOptions options;
  options.uneven = 0.9;
  const PerfCase one(test_named("all_gather"), options, DataType::kFloat32, ReduceOp::kSum, 0, 4000,
                     1, 3);
  int buffer = 0;
  const Call call = one.call(&buffer, nullptr);
  ASSERT_EQ(call.counts.size(), 3);
  EXPECT_EQ(std::vector<std::uint64_t>(call.counts.begin(), call.counts.end()),
            (std::vector<std::uint64_t>{900, 50, 50}));
  EXPECT_EQ(one.bytes(), 4000);
}

TEST(PerfCase, DrawsTheSameCountsOnAllRanks) {
  PerfOptions options;
  options.skew = 3;
  std::vector<std::vector<std::uint64_t>> sent;
  std::vector<std::vector<std::uint64_t>> received;
  for (int rank = 0; rank < 4; ++rank) {
    const PerfCase one(test_named("alltoallv"), options, DataType::kInt8, ReduceOp::kSum, 0, 40000,
                       rank, 4);
    int buffer = 0;
    const Call call = one.call(&buffer, nullptr);
    sent.emplace_back(call.counts.begin(), call.counts.end());
    received.emplace_back(call.receive_counts.begin(), call.receive_counts.end());
    EXPECT_NEAR(static_cast<double>(one.bytes()), 40000, 4);
  }
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) EXPECT_EQ(sent[from][to], received[to][from]);
  }
}

}  // namespace
}  // namespace polyrail::perf
