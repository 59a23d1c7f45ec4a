// Communicators made of communicators.
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>

#include <polyrail/polyrail.h>

#include "tests/collective/ranks.hpp"

namespace polyrail {
namespace {

std::int64_t sum_of(Communicator& communicator, std::int64_t value) {
  std::int64_t sum = -1;
  const Status status = communicator.all_reduce(&value, &sum, 1, DataType::kInt64, ReduceOp::kSum);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return sum;
}

TEST(Split, PutsRanksOfOneColorTogetherInOrderOfTheirKeys) {
  const Options options = quick_options("shm,loopback");
  run_ranks(5, options, [&](int rank, Communicator& parent) {
    // Two in a row: {0, 2, 4} by falling rank and {1, 3}, then {0, 1} and three of one rank each.
    auto first = parent.split(rank % 2, rank % 2 == 0 ? -rank : 7, options);
    ASSERT_TRUE(first.is_ok()) << first.status().message();
    Communicator& part = *first.value();
    EXPECT_EQ(part.rank_count(), rank % 2 == 0 ? 3 : 2);
    EXPECT_EQ(part.rank(), rank % 2 == 0 ? (4 - rank) / 2 : rank / 2);
    auto second = parent.split(rank < 2 ? 0 : rank, 0, options);
    ASSERT_TRUE(second.is_ok()) << second.status().message();
    EXPECT_EQ(second.value()->rank_count(), rank < 2 ? 2 : 1);
    EXPECT_EQ(sum_of(part, 1 << rank), rank % 2 == 0 ? 1 + 4 + 16 : 2 + 8);
    EXPECT_EQ(sum_of(*second.value(), 1 << rank), rank < 2 ? 3 : 1 << rank);
    EXPECT_EQ(sum_of(parent, 1 << rank), 31);
    // The parent of a part may end first.
    auto third = part.split(0, part.rank(), options);
    ASSERT_TRUE(third.is_ok()) << third.status().message();
    first.value().reset();
    EXPECT_EQ(sum_of(*third.value(), 1 << rank), rank % 2 == 0 ? 1 + 4 + 16 : 2 + 8);
  });
}

TEST(Split, LeavesOutRanksWithoutAColor) {
  const Options options = quick_options("shm,loopback");
  run_ranks(3, options, [&](int rank, Communicator& parent) {
    auto part = parent.split(rank == 1 ? Communicator::kNoColor : 3, 0, options);
    ASSERT_TRUE(part.is_ok()) << part.status().message();
    ASSERT_EQ(part.value() == nullptr, rank == 1);
    if (rank != 1) {
      EXPECT_EQ(sum_of(*part.value(), rank), 2);
    }
    auto none = parent.split(Communicator::kNoColor, 0, options);
    ASSERT_TRUE(none.is_ok()) << none.status().message();
    EXPECT_EQ(none.value(), nullptr);
  });
}

TEST(Split, TellsAllRanksWhatIsWrongOnOne) {
  const Options options = quick_options("shm,loopback");
  run_ranks(3, options, [&](int rank, Communicator& parent) {
    auto part = parent.split(rank == 1 ? -5 : 0, 0, options);
    ASSERT_FALSE(part.is_ok());
    EXPECT_EQ(part.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(part.status().message(), "split: rank 1: the color -5 is negative");
    Options wrong = options;
    if (rank == 2) wrong.progress = "never";
    part = parent.split(0, 0, wrong);
    ASSERT_FALSE(part.is_ok());
    EXPECT_NE(part.status().message().find("rank 2"), std::string::npos) << part.status().message();
    // Nothing is broken by that.
    part = parent.split(0, 0, options);
    ASSERT_TRUE(part.is_ok()) << part.status().message();
    EXPECT_EQ(sum_of(*part.value(), 1), 3);
  });
}

TEST(Split, OfRanksThatMetByAUniqueId) {
  const Options options = quick_options("shm,loopback");
  const Result<UniqueId> id = make_unique_id(options);
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto bootstrap = join(id.value(), rank, 3, options);
      ASSERT_TRUE(bootstrap.is_ok()) << bootstrap.status().message();
      auto parent = Communicator::create(std::move(bootstrap).value(), options);
      ASSERT_TRUE(parent.is_ok()) << parent.status().message();
      for (int round = 0; round < 2; ++round) {
        auto part = parent.value()->split(rank == 0 ? 1 : 0, 0, options);
        ASSERT_TRUE(part.is_ok()) << part.status().message();
        EXPECT_EQ(sum_of(*part.value(), rank), rank == 0 ? 0 : 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Dup, IsIndependentOfTheFirst) {
  run_ranks(3, quick_options("shm,loopback"), [&](int rank, Communicator& communicator) {
    auto copy = communicator.dup();
    ASSERT_TRUE(copy.is_ok()) << copy.status().message();
    EXPECT_EQ(copy.value()->rank(), rank);
    EXPECT_EQ(copy.value()->rank_count(), 3);
    EXPECT_EQ(sum_of(communicator, rank), 3);
    EXPECT_EQ(sum_of(*copy.value(), rank), 3) << "and all ranks are done with the first sum";
    if (rank == 0) communicator.abort();
    std::int64_t value = 1;
    EXPECT_FALSE(
        communicator.all_reduce(&value, &value, 1, DataType::kInt64, ReduceOp::kSum).is_ok());
    EXPECT_EQ(sum_of(*copy.value(), 1), 3);
  });
}

// --- the C API

polyrailConfig_t quick_config(int blocking) {
  polyrailConfig_t config = POLYRAIL_CONFIG_INITIALIZER;
  config.options = "calibration_ms=10\nstart_timeout_ms=10000\nlog_level=off";
  config.blocking = blocking;
  return config;
}

polyrailResult_t wait_until_made(polyrailComm_t comm) {
  polyrailResult_t result = polyrailInProgress;
  while (result == polyrailInProgress) {
    EXPECT_EQ(polyrailCommGetAsyncError(comm, &result), polyrailSuccess);
    std::this_thread::yield();
  }
  return result;
}

TEST(NonBlockingCreation, GivesAHandleAtOnce) {
  polyrailUniqueId id;
  ASSERT_EQ(polyrailGetUniqueId(&id), polyrailSuccess) << polyrailGetLastError(nullptr);
  const polyrailConfig_t config = quick_config(0);
  polyrailComm_t comms[2];
  // One thread: a blocking call would never come back.
  ASSERT_EQ(polyrailCommInitRankConfig(&comms[0], 2, id, 0, &config), polyrailInProgress);
  ASSERT_NE(comms[0], nullptr);
  polyrailResult_t error = polyrailSuccess;
  EXPECT_EQ(polyrailCommGetAsyncError(comms[0], &error), polyrailSuccess);
  EXPECT_EQ(error, polyrailInProgress);
  float value = 1;
  int count = 0;
  EXPECT_EQ(polyrailAllReduce(&value, &value, 1, polyrailFloat, polyrailSum, comms[0], nullptr),
            polyrailInvalidUsage);
  EXPECT_EQ(polyrailCommCount(comms[0], &count), polyrailInvalidUsage);
  EXPECT_NE(std::strstr(polyrailGetLastError(comms[0]), "not ready"), nullptr);
  ASSERT_EQ(polyrailCommInitRankConfig(&comms[1], 2, id, 1, &config), polyrailInProgress);
  for (polyrailComm_t comm : comms) EXPECT_EQ(wait_until_made(comm), polyrailSuccess);
  EXPECT_EQ(polyrailCommCount(comms[0], &count), polyrailSuccess);
  EXPECT_EQ(count, 2);
  float values[2] = {1, 2};
  ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        polyrailAllReduce(&values[i], &values[i], 1, polyrailFloat, polyrailSum, comms[i], nullptr),
        polyrailSuccess);
  }
  EXPECT_EQ(polyrailGroupEnd(), polyrailSuccess) << polyrailGetLastError(nullptr);
  EXPECT_EQ(values[0], 3);
  std::thread other([&] { EXPECT_EQ(polyrailCommDestroy(comms[0]), polyrailSuccess); });
  EXPECT_EQ(polyrailCommDestroy(comms[1]), polyrailSuccess);
  other.join();
}

TEST(NonBlockingCreation, ReportsItsFailure) {
  polyrailUniqueId id;
  ASSERT_EQ(polyrailGetUniqueId(&id), polyrailSuccess);
  polyrailConfig_t config = quick_config(0);
  config.options = "start_timeout_ms=100\nlog_level=off";
  polyrailComm_t comm = nullptr;
  ASSERT_EQ(polyrailCommInitRankConfig(&comm, 2, id, 0, &config), polyrailInProgress);
  EXPECT_EQ(wait_until_made(comm), polyrailTimeout);
  float value = 1;
  EXPECT_EQ(polyrailAllReduce(&value, &value, 1, polyrailFloat, polyrailSum, comm, nullptr),
            polyrailTimeout);
  EXPECT_NE(std::strstr(polyrailGetLastError(comm), "rank 1"), nullptr)
      << polyrailGetLastError(comm);
  EXPECT_EQ(polyrailCommDestroy(comm), polyrailSuccess);
}

TEST(NonBlockingCreation, MayBeEndedBeforeItIsOver) {
  polyrailConfig_t config = quick_config(0);
  config.options = "start_timeout_ms=100\nlog_level=off";
  for (bool is_abort : {true, false}) {
    polyrailUniqueId id;
    ASSERT_EQ(polyrailGetUniqueId(&id), polyrailSuccess);
    polyrailComm_t comm = nullptr;
    ASSERT_EQ(polyrailCommInitRankConfig(&comm, 2, id, 0, &config), polyrailInProgress);
    EXPECT_EQ(is_abort ? polyrailCommAbort(comm) : polyrailCommDestroy(comm), polyrailSuccess);
  }
}

TEST(Configs, OfOlderProgramsAreUnderstood) {
  polyrailUniqueId id;
  ASSERT_EQ(polyrailGetUniqueId(&id), polyrailSuccess);
  polyrailConfig_t config = quick_config(77);  // what lies behind the end of a shorter one
  config.size = offsetof(polyrailConfig_t, blocking);
  polyrailComm_t comm = nullptr;
  EXPECT_EQ(polyrailCommInitRankConfig(&comm, 1, id, 0, &config), polyrailSuccess)
      << polyrailGetLastError(nullptr);
  polyrailComm_t part = nullptr;
  EXPECT_EQ(polyrailCommSplit(comm, -3, 0, &part, nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailCommSplit(comm, 0, 0, nullptr, nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailCommSplit(nullptr, 0, 0, &part, nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailCommSplit(comm, POLYRAIL_SPLIT_NOCOLOR, 0, &part, nullptr), polyrailSuccess);
  EXPECT_EQ(part, nullptr);
  EXPECT_EQ(polyrailCommDup(comm, nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailCommDup(comm, &part), polyrailSuccess) << polyrailGetLastError(comm);
  int count = 0;
  EXPECT_EQ(polyrailCommCount(part, &count), polyrailSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(polyrailCommDestroy(part), polyrailSuccess);
  const polyrailConfig_t later = quick_config(0);
  EXPECT_EQ(polyrailCommSplit(comm, 0, 0, &part, &later), polyrailInvalidArgument);
  EXPECT_EQ(polyrailCommDestroy(comm), polyrailSuccess);
  config.size = sizeof config;
  EXPECT_EQ(polyrailCommInitRankConfig(&comm, 1, id, 0, &config), polyrailInvalidArgument);
  config.size -= 5;
  EXPECT_EQ(polyrailCommInitRankConfig(&comm, 1, id, 0, &config), polyrailInvalidArgument);
  config.size = 8;
  EXPECT_EQ(polyrailCommInitRankConfig(&comm, 1, id, 0, &config), polyrailInvalidArgument);
  EXPECT_EQ(polyrailCommInitAll(nullptr, 2, nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailCommInitAll(&comm, 0, nullptr), polyrailInvalidArgument);
}

}  // namespace
}  // namespace polyrail
