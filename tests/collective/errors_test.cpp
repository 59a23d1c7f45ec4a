// Wrong calls and ranks that do not agree: a clear error on every rank, and nothing leaks.
#include <dirent.h>

#include <future>
#include <limits>

#include "tests/collective/ranks.hpp"

namespace polyrail {
namespace {

int count_entries(const char* path) {
  int count = 0;
  DIR* directory = opendir(path);
  if (directory == nullptr) return -1;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

TEST(AllReduceArguments, AreRefusedWithTheirNames) {
  run_ranks(1, quick_options("loopback"), [](int, Communicator& communicator) {
    float data[8] = {};
    const auto refuse = [&](const void* in, void* out, std::uint64_t count, int type, int op,
                            const std::string& word) {
      const Status status = communicator.all_reduce(in, out, count, static_cast<DataType>(type),
                                                    static_cast<ReduceOp>(op));
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << word;
      EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
    };
    const int type = static_cast<int>(DataType::kFloat32);
    refuse(nullptr, data, 1, type, 0, "input is null");
    refuse(data, nullptr, 1, type, 0, "output is null");
    refuse(data, data, 1, 77, 0, "data type 77");
    refuse(data, data, 1, type, 99, "operator 99");
    refuse(data, data, std::numeric_limits<std::uint64_t>::max(), type, 0, "do not fit");
    refuse(data, data, std::numeric_limits<std::uint64_t>::max() / 8, type, 0, "do not fit");
    refuse(data, data + 1, 4, type, 0, "overlap");
    EXPECT_TRUE(
        communicator.all_reduce(nullptr, nullptr, 0, DataType::kFloat32, ReduceOp::kSum).is_ok());
    EXPECT_TRUE(communicator.async_error().is_ok()) << "a refused call must not break anything";
  });
}

class Disagreement : public testing::TestWithParam<std::string> {};

TEST_P(Disagreement, InTheCountIsAnErrorOnAllRanksThatShowsBothCalls) {
  for (std::uint64_t base : {8u, 100000u}) {
    run_ranks(3, quick_options(GetParam()), [&](int rank, Communicator& communicator) {
      std::vector<float> data(base + 2);
      const Status status = communicator.all_reduce(
          data.data(), data.data(), base + (rank == 1 ? 1 : 0), DataType::kFloat32, ReduceOp::kSum);
      EXPECT_FALSE(status.is_ok());
      EXPECT_NE(status.message().find("of " + std::to_string(base) + " float"), std::string::npos)
          << status.message();
      EXPECT_NE(status.message().find("of " + std::to_string(base + 1) + " float"),
                std::string::npos)
          << status.message();
      EXPECT_FALSE(communicator.async_error().is_ok());
      EXPECT_FALSE(
          communicator.all_reduce(data.data(), data.data(), 1, DataType::kFloat32, ReduceOp::kSum)
              .is_ok());
    });
  }
}

// Few bytes may go another way than many.
TEST_P(Disagreement, BetweenAShortAndALongCallIsAnErrorOnAllRanks) {
  run_ranks(3, quick_options(GetParam()), [&](int rank, Communicator& communicator) {
    std::vector<float> data(100000);
    const std::uint64_t count = rank == 1 ? 8 : data.size();
    const Status status = communicator.all_reduce(data.data(), data.data(), count,
                                                  DataType::kFloat32, ReduceOp::kSum);
    EXPECT_FALSE(status.is_ok());
    EXPECT_NE(status.message().find("of 8 float"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("of 100000 float"), std::string::npos) << status.message();
  });
}

TEST_P(Disagreement, InTypeOrOperatorIsAnErrorOnAllRanks) {
  run_ranks(2, quick_options(GetParam()), [&](int rank, Communicator& communicator) {
    std::vector<float> data(64);
    const Status status = communicator.all_reduce(data.data(), data.data(), 64, DataType::kFloat32,
                                                  rank == 0 ? ReduceOp::kSum : ReduceOp::kMax);
    EXPECT_FALSE(status.is_ok());
    EXPECT_NE(status.message().find("sum"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("max"), std::string::npos) << status.message();
  });
}

// Plans in place and out of place differ, so the ranks have to agree on that as well.
TEST_P(Disagreement, InPlacementIsAnErrorOnAllRanks) {
  run_ranks(2, quick_options(GetParam()), [&](int rank, Communicator& communicator) {
    std::vector<float> data(64);
    std::vector<float> other(64);
    const Status status =
        communicator.all_reduce(data.data(), rank == 0 ? data.data() : other.data(), 64,
                                DataType::kFloat32, ReduceOp::kSum);
    EXPECT_FALSE(status.is_ok());
    EXPECT_NE(status.message().find("in place"), std::string::npos) << status.message();
  });
}

// A call of nothing needs nobody, but it is a call.
TEST_P(Disagreement, WithACallOfNothingIsAnErrorOnAllRanks) {
  run_ranks(2, quick_options(GetParam()), [&](int rank, Communicator& communicator) {
    std::vector<float> data(100);
    Status status = communicator.all_reduce(data.data(), data.data(), rank == 1 ? 0 : data.size(),
                                            DataType::kFloat32, ReduceOp::kSum);
    // The rank that had nothing to do learns of it in its next call.
    if (rank == 1 && status.is_ok()) {
      status = communicator.all_reduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                                       ReduceOp::kSum);
    }
    EXPECT_FALSE(status.is_ok());
    // What rank 1 has sent for its second call may stand before its report.
    if (rank == 0 && GetParam() != "shm") return;
    EXPECT_NE(status.message().find("of 0 float"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("of 100 float"), std::string::npos) << status.message();
  });
}

TEST(Deadline, OfAnOperationNamesTheMissingRank) {
  Options options = quick_options("loopback");
  options.operation_timeout_ms = 200;
  std::promise<void> is_over;
  run_ranks(2, options, [&](int rank, Communicator& communicator) {
    if (rank == 1) {  // never calls
      is_over.get_future().wait();
      return;
    }
    float value = 1;
    const Status status =
        communicator.all_reduce(&value, &value, 1, DataType::kFloat32, ReduceOp::kSum);
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_NE(status.message().find("from rank 1"), std::string::npos) << status.message();
    is_over.set_value();
  });
}

// After an error the caller may free its buffers, and a late peer must not read them.
TEST_P(Disagreement, AboutWhenToCallLeavesNoReaderOfFreedMemory) {
  Options options = quick_options(GetParam());
  options.operation_timeout_ms = 100;
  std::promise<void> is_over;
  run_ranks(2, options, [&](int rank, Communicator& communicator) {
    constexpr std::size_t kCount = 1 << 20;
    auto data = std::make_unique<std::vector<float>>(kCount, 1.0f);
    if (rank == 1) is_over.get_future().wait();
    EXPECT_FALSE(
        communicator
            .all_reduce(data->data(), data->data(), kCount, DataType::kFloat32, ReduceOp::kSum)
            .is_ok());
    data.reset();
    if (rank == 0) is_over.set_value();
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Disagreement, testing::Values("loopback", "shm", "tcp"),
                         [](const auto& row) { return row.param; });

TEST(Abort, FromAnotherThreadEndsAWaitingCallOnAllRanks) {
  run_ranks(2, quick_options("shm"), [](int rank, Communicator& communicator) {
    float value = 1;
    if (rank == 1) {
      communicator.abort();
      EXPECT_EQ(communicator.async_error().code(), StatusCode::kAborted);
      return;
    }
    const Status status =
        communicator.all_reduce(&value, &value, 1, DataType::kFloat32, ReduceOp::kSum);
    EXPECT_EQ(status.code(), StatusCode::kRemoteError);
    EXPECT_NE(status.message().find("aborted"), std::string::npos) << status.message();
  });
}

TEST(Options, ThatNameNoTransportAreRefused) {
  Options options = quick_options("pigeon");
  Result<std::vector<std::unique_ptr<Bootstrap>>> bootstraps = join_in_process(1, options);
  ASSERT_TRUE(bootstraps.is_ok());
  const auto made = Communicator::create(std::move(bootstraps.value()[0]), options);
  ASSERT_FALSE(made.is_ok());
  EXPECT_NE(made.status().message().find("pigeon"), std::string::npos);
}

TEST(Resources, AreAllGivenBack) {
  const auto run_once = [](const std::string& transports, bool is_broken) {
    run_ranks(3, quick_options(transports), [&](int rank, Communicator& communicator) {
      std::vector<float> data(50000, 1);
      (void)communicator.all_reduce(data.data(), data.data(),
                                    data.size() - (is_broken && rank == 2 ? 1 : 0),
                                    DataType::kFloat32, ReduceOp::kSum);
      Work work = communicator.all_reduce_async(data.data(), data.data(), 10, DataType::kFloat32,
                                                ReduceOp::kSum);
      (void)work.wait();
    });
  };
  for (const char* transports : {"loopback", "shm", "tcp"}) {
    run_once(transports, false);  // what is made once per process is there now
    const int descriptors = count_entries("/proc/self/fd");
    const int threads = count_entries("/proc/self/task");
    const int shared = count_entries("/dev/shm");
    for (bool is_broken : {false, true}) {
      run_once(transports, is_broken);
      EXPECT_EQ(count_entries("/proc/self/fd"), descriptors) << transports;
      EXPECT_EQ(count_entries("/proc/self/task"), threads) << transports;
      EXPECT_EQ(count_entries("/dev/shm"), shared) << transports;
    }
  }
}

}  // namespace
}  // namespace polyrail
