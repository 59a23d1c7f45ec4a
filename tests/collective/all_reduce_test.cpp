// All-reduce over ranks that are threads: every type, operator, size class and placement.
#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <random>

#include "perf/tools/perf_data.hpp"
#include "tests/collective/ranks.hpp"

namespace polyrail {
namespace {

struct Call {
  std::uint64_t count;
  DataType type;
  ReduceOp op;
  bool is_in_place;
};

// Three rounds with other data each, so that what an earlier round left behind would show.
void check_call(Communicator& communicator, const Call& call) {
  const int rank = communicator.rank();
  const int ranks = communicator.rank_count();
  perf::Buffer input(call.count, call.type, false, 0);
  perf::Buffer output(call.count, call.type, false, 0);
  void* target = call.is_in_place ? input.data() : output.data();
  for (std::uint64_t round = 0; round < 3; ++round) {
    perf::fill_input(input.data(), call.count, call.type, call.op, rank, ranks, round);
    const Status status =
        communicator.all_reduce(input.data(), target, call.count, call.type, call.op);
    ASSERT_TRUE(status.is_ok()) << status.message();
    ASSERT_EQ(perf::count_wrong(target, call.count, call.type, call.op, ranks, round), 0u)
        << "rank " << rank << " of " << ranks << ", " << call.count << " " << name(call.type)
        << ", " << name(call.op) << ", round " << round << (call.is_in_place ? ", in place" : "");
  }
}

void check(int rank_count, const Options& options, const Call& call) {
  run_ranks(rank_count, options,
            [&](int, Communicator& communicator) { check_call(communicator, call); });
}

class AllReduce : public testing::TestWithParam<std::string> {};

TEST_P(AllReduce, SumsEverySizeInAndOutOfPlace) {
  for (int ranks : {1, 2, 3, 4}) {
    run_ranks(ranks, quick_options(GetParam()), [](int, Communicator& communicator) {
      for (std::uint64_t count : {0, 1, 2, 3, 7, 1000, 65537, 1000003}) {
        check_call(communicator, {count, DataType::kFloat32, ReduceOp::kSum, false});
        check_call(communicator, {count, DataType::kInt64, ReduceOp::kSum, true});
      }
    });
  }
}

TEST_P(AllReduce, KnowsEveryTypeAndOperator) {
  run_ranks(3, quick_options(GetParam()), [&](int rank, Communicator& communicator) {
    for (DataType type : kAllDataTypes) {
      for (ReduceOp op : kAllReduceOps) {
        if (!can_reduce(type, op) || op >= ReduceOp::kPreMulSum) continue;
        for (std::uint64_t count : {5, 30011}) {
          perf::Buffer input(count, type, false, 1);
          perf::Buffer output(count, type, false, 3);
          perf::fill_input(input.data(), count, type, op, rank, 3, 4);
          const Status status =
              communicator.all_reduce(input.data(), output.data(), count, type, op);
          ASSERT_TRUE(status.is_ok()) << status.message();
          ASSERT_EQ(perf::count_wrong(output.data(), count, type, op, 3, 4), 0u)
              << name(type) << " " << name(op) << " " << count;
        }
      }
    }
  });
}

TEST_P(AllReduce, GivesTheSameBitsOnAllRanks) {
  constexpr std::uint64_t kCount = 100003;
  std::vector<std::vector<float>> results(4);
  run_ranks(4, quick_options(GetParam()), [&](int rank, Communicator& communicator) {
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    std::uniform_real_distribution<float> values(-1, 1);
    std::vector<float> input(kCount);
    for (float& value : input) value = values(random);
    results[rank].resize(kCount);
    ASSERT_TRUE(communicator
                    .all_reduce(input.data(), results[rank].data(), kCount, DataType::kFloat32,
                                ReduceOp::kSum)
                    .is_ok());
  });
  for (int rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(std::memcmp(results[0].data(), results[rank].data(), 4 * kCount), 0) << rank;
  }
}

TEST_P(AllReduce, RunsAsynchronousCallsInOrder) {
  run_ranks(2, quick_options(GetParam()), [&](int, Communicator& communicator) {
    std::vector<std::int32_t> value(1000, 1);
    std::vector<Work> works;
    for (int i = 0; i < 10; ++i) {
      works.push_back(communicator.all_reduce_async(value.data(), value.data(), value.size(),
                                                    DataType::kInt32, ReduceOp::kSum));
    }
    for (Work& work : works) ASSERT_TRUE(work.wait().is_ok());
    EXPECT_EQ(value[999], 1 << 10);
    // A blocking call after asynchronous ones.
    ASSERT_TRUE(
        communicator
            .all_reduce(value.data(), value.data(), value.size(), DataType::kInt32, ReduceOp::kSum)
            .is_ok());
    EXPECT_EQ(value[0], 1 << 11);
  });
}

// Few bytes may go another way than many; calls must stay in order all the same.
TEST_P(AllReduce, KeepsCallsOfUnlikeSizesInOrder) {
  run_ranks(3, quick_options(GetParam()), [](int rank, Communicator& communicator) {
    std::mt19937 random(5);  // the same on all ranks
    constexpr std::uint64_t kCounts[] = {0, 1, 3, 100, 500, 501, 700, 5000, 100000};
    for (int round = 0; round < 30; ++round) {
      std::vector<std::vector<std::int64_t>> data;
      std::vector<Work> works;
      for (int call = 0; call < 8; ++call) {
        const std::uint64_t count = kCounts[random() % std::size(kCounts)];
        auto& values = data.emplace_back(count + 1, rank + 10 * call);
        if (random() % 2 == 0) {
          works.push_back(communicator.all_reduce_async(values.data(), values.data(), count,
                                                        DataType::kInt64, ReduceOp::kSum));
        } else {
          ASSERT_TRUE(
              communicator
                  .all_reduce(values.data(), values.data(), count, DataType::kInt64, ReduceOp::kSum)
                  .is_ok());
        }
      }
      for (Work& work : works) ASSERT_TRUE(work.wait().is_ok());
      for (int call = 0; call < 8; ++call) {
        for (std::size_t i = 0; i + 1 < data[call].size(); ++i) {
          ASSERT_EQ(data[call][i], 3 + 30 * call) << "call " << call << " of round " << round;
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, AllReduce, testing::Values("loopback", "shm", "tcp"),
                         [](const auto& row) { return row.param; });

TEST(AllReduceProgress, WorksInEveryMode) {
  for (const char* mode : {"caller", "thread", "auto"}) {
    Options options = quick_options("loopback");
    options.progress = mode;
    check(3, options, {5000, DataType::kFloat32, ReduceOp::kSum, false});
    run_ranks(2, options, [&](int, Communicator& communicator) {
      std::vector<std::int32_t> value(70000, 3);
      Work work = communicator.all_reduce_async(value.data(), value.data(), value.size(),
                                                DataType::kInt32, ReduceOp::kSum);
      while (!work.is_done()) std::this_thread::yield();
      ASSERT_TRUE(work.wait().is_ok());
      EXPECT_EQ(value[69999], 6);
    });
  }
}

// Asking whether a work is done must not take it away from the thread that runs it.
TEST(AllReduceProgress, GoesOnAfterALook) {
  for (const char* progress : {"auto", "thread", "caller"}) {
    Options options = quick_options("loopback");
    options.progress = progress;
    run_ranks(2, options, [](int, Communicator& communicator) {
      for (int round = 0; round < 50; ++round) {
        std::vector<float> data(100000, 1);
        Work work = communicator.all_reduce_async(data.data(), data.data(), data.size(),
                                                  DataType::kFloat32, ReduceOp::kSum);
        (void)work.is_done();
        ASSERT_TRUE(work.wait().is_ok());
        ASSERT_EQ(data[99999], 2);
      }
    });
  }
}

TEST(AllReduceAlgorithms, AllGiveTheRightResult) {
  for (const char* algorithm :
       {"ring", "direct", "one_shot", "recursive_doubling", "halving_doubling", "tree"}) {
    for (int ranks : {2, 3, 4, 5}) {
      Options options = quick_options("loopback");
      options.algorithm = algorithm;
      run_ranks(ranks, options, [&](int, Communicator& communicator) {
        SCOPED_TRACE(algorithm);
        check_call(communicator, {10007, DataType::kFloat32, ReduceOp::kAvg, false});
        check_call(communicator, {10007, DataType::kFloat32, ReduceOp::kAvg, true});
      });
    }
  }
}

TEST(Communicators, WithDifferentOptionsWorkSideBySide) {
  std::thread other([] {
    Options options = quick_options("shm");
    options.progress = "thread";
    check(2, options, {30000, DataType::kFloat64, ReduceOp::kMax, false});
  });
  check(2, quick_options("loopback"), {30000, DataType::kFloat32, ReduceOp::kMin, true});
  other.join();
}

}  // namespace
}  // namespace polyrail
