// Operations that follow operations of other communicators: dependencies, streams and events.
#include <condition_variable>
#include <future>
#include <mutex>
#include <random>

#include "tests/collective/ranks.hpp"

namespace polyrail {
namespace {

Options options_with(const std::string& progress) {
  Options options = quick_options("shm,loopback");
  options.progress = progress;
  return options;
}

// In place: the sum over equal inputs, so that the result shows how many ran after each other.
Call sum(std::vector<std::int64_t>& data) {
  return Call::all_reduce(data.data(), data.data(), data.size(), DataType::kInt64, ReduceOp::kSum);
}
std::int64_t power(std::int64_t base, int exponent) {
  std::int64_t power = 1;
  for (int i = 0; i < exponent; ++i) power *= base;
  return power;
}

class Dependencies : public testing::TestWithParam<std::string> {};

TEST_P(Dependencies, KeepOrderAcrossCommunicators) {
  run_ranks_with(3, 3, options_with(GetParam()), [](int, Communicators& communicators) {
    for (std::size_t count : {1u, 5000u}) {
      std::vector<std::int64_t> data(count, 1);
      std::vector<Work> works;
      for (int i = 0; i < 30; ++i) {
        const std::span<const Work> after = works.empty() ? works : std::span(&works.back(), 1);
        works.push_back(communicators[i % 3]->start(sum(data), after));
      }
      ASSERT_TRUE(works.back().wait().is_ok()) << works.back().wait().message();
      for (Work& work : works) EXPECT_TRUE(work.is_done());
      EXPECT_EQ(data.front(), power(3, 30));
      EXPECT_EQ(data.back(), power(3, 30));
    }
  });
}

TEST_P(Dependencies, HoldUpWhatWasStartedBehindOnTheSameCommunicator) {
  run_ranks_with(2, 3, options_with(GetParam()), [](int, Communicators& communicators) {
    std::vector<std::int64_t> first(10, 1);
    std::vector<std::int64_t> second(10, 1);
    const Work other = communicators[0]->start(sum(first));
    const Work waiting = communicators[1]->start(sum(first), {&other, 1});
    ASSERT_TRUE(communicators[1]->run(sum(second)).is_ok());
    EXPECT_TRUE(Work(waiting).is_done());
    EXPECT_EQ(first[0], 9);
    EXPECT_EQ(second[0], 3);
  });
}

TEST_P(Dependencies, ThatFailedFailTheOperationOnAllRanks) {
  run_ranks_with(2, 2, options_with(GetParam()), [](int rank, Communicators& communicators) {
    std::vector<std::int64_t> data(10, 1);
    std::vector<Work> after = {communicators[0]->start(sum(data))};
    if (rank == 0) after.push_back(Work(Status(StatusCode::kSystemError, "the disk is full")));
    Work work = communicators[1]->start(sum(data), after);
    Work behind = communicators[1]->start(sum(data));
    const StatusCode code = rank == 0 ? StatusCode::kSystemError : StatusCode::kRemoteError;
    for (Work* one : {&work, &behind}) {
      EXPECT_EQ(one->wait().code(), code);
      EXPECT_NE(one->wait().message().find("the disk is full"), std::string::npos)
          << one->wait().message();
    }
    EXPECT_FALSE(communicators[1]->async_error().is_ok());
    EXPECT_TRUE(after[0].wait().is_ok());
    EXPECT_TRUE(communicators[0]->async_error().is_ok())
        << "the other one has nothing to do with it";
  });
}

TEST_P(Dependencies, AreNotAwaitedAfterAnAbort) {
  std::promise<void> is_aborted;
  run_ranks_with(2, 2, options_with(GetParam()), [&](int rank, Communicators& communicators) {
    std::vector<std::int64_t> data(10, 1);
    if (rank == 1) {
      // Starts on the first communicator only when rank 0 has given the second one up.
      Work work = communicators[1]->start(sum(data));
      is_aborted.get_future().wait();
      EXPECT_FALSE(work.wait().is_ok());
      EXPECT_TRUE(communicators[0]->run(sum(data)).is_ok());
      return;
    }
    Work first = communicators[0]->start(sum(data));
    Work second = communicators[1]->start(sum(data), {&first, 1});
    std::thread other([&] { communicators[1]->abort(); });
    EXPECT_EQ(second.wait().code(), StatusCode::kAborted) << second.wait().message();
    EXPECT_FALSE(first.is_done());
    other.join();
    is_aborted.set_value();
    EXPECT_TRUE(first.wait().is_ok());
  });
}

TEST_P(Dependencies, AreAwaitedWhenACommunicatorEnds) {
  run_ranks_with(2, 3, options_with(GetParam()), [](int, Communicators& communicators) {
    std::vector<std::int64_t> data(10000, 1);
    Work first = communicators[0]->start(sum(data));
    Work second = communicators[1]->start(sum(data), {&first, 1});
    communicators[1].reset();
    EXPECT_TRUE(second.is_done());
    EXPECT_TRUE(second.wait().is_ok());
    communicators[0].reset();
    EXPECT_EQ(data[0], 9);
  });
}

INSTANTIATE_TEST_SUITE_P(Progress, Dependencies, testing::Values("auto", "thread", "caller"),
                         [](const auto& row) { return row.param; });

TEST(Dependency, DoesNotHideThatAPeerFails) {
  std::promise<void> has_failed;
  run_ranks_with(2, 2, options_with("auto"), [&](int rank, Communicators& communicators) {
    std::vector<std::int64_t> data(10, 1);
    if (rank == 1) {
      communicators[1]->abort();
      has_failed.get_future().wait();
      EXPECT_TRUE(communicators[0]->run(sum(data)).is_ok());
      return;
    }
    Work first = communicators[0]->start(sum(data));
    Work second = communicators[1]->start(sum(data), {&first, 1});
    EXPECT_EQ(second.wait().code(), StatusCode::kRemoteError);
    EXPECT_FALSE(first.is_done());
    has_failed.set_value();
    EXPECT_TRUE(first.wait().is_ok());
  });
}

TEST(Dependency, OutlivesTheCommunicatorOfTheOther) {
  run_ranks_with(2, 3, options_with("auto"), [](int, Communicators& communicators) {
    std::vector<std::int64_t> data(10, 1);
    Work second;
    {
      const Work first = communicators[0]->start(sum(data));
      communicators[0].reset();
      second = communicators[1]->start(sum(data), {&first, 1});
    }
    EXPECT_TRUE(second.wait().is_ok());
    EXPECT_EQ(data[9], 9);
  });
}

class Streams : public testing::TestWithParam<std::string> {};

TEST_P(Streams, RunInOrderAcrossCommunicators) {
  run_ranks_with(2, 3, options_with(GetParam()), [](int, Communicators& communicators) {
    std::vector<std::int64_t> data(3000, 1);
    Stream stream;
    EXPECT_TRUE(stream.is_done());
    for (int i = 0; i < 36; ++i) {
      ASSERT_TRUE(stream.start(*communicators[i % 3 == 0], sum(data)).is_ok());
    }
    ASSERT_TRUE(stream.synchronize().is_ok());
    EXPECT_TRUE(stream.is_done());
    EXPECT_EQ(data[2999], power(3, 36));
  });
}

TEST_P(Streams, WaitForEventsOfOthers) {
  run_ranks_with(2, 3, options_with(GetParam()), [](int, Communicators& communicators) {
    std::vector<std::int64_t> data(1000, 1);
    std::vector<std::int64_t> other(1000, 1);
    Stream first;
    Stream second;
    EXPECT_TRUE(first.record().is_done()) << "nothing was given yet";
    for (int i = 0; i < 18; ++i) {
      ASSERT_TRUE(first.start(*communicators[0], sum(data)).is_ok());
      second.wait(first.record());
      ASSERT_TRUE(second.start(*communicators[1], sum(data)).is_ok());
      first.wait(second.record());
    }
    // An event knows what its stream waits for, though nothing followed it.
    Event event = first.record();
    EXPECT_TRUE(event.wait().is_ok());
    EXPECT_TRUE(event.is_done());
    EXPECT_TRUE(second.is_done());
    EXPECT_EQ(data[0], power(3, 36));
  });
}

TEST_P(Streams, KeepTheirFirstFailure) {
  run_ranks_with(3, 2, options_with(GetParam()), [](int rank, Communicators& communicators) {
    std::vector<std::int64_t> data(10, 1);
    Stream stream;
    // Refused calls leave no trace.
    EXPECT_EQ(stream
                  .start(*communicators[0], Call::all_reduce(nullptr, data.data(), 1,
                                                             DataType::kInt64, ReduceOp::kSum))
                  .code(),
              StatusCode::kInvalidArgument);
    ASSERT_TRUE(stream.start(*communicators[0], sum(data)).is_ok());
    ASSERT_TRUE(stream.synchronize().is_ok());
    if (rank == 0) communicators[1]->abort();
    (void)stream.start(*communicators[1], sum(data));
    (void)stream.start(*communicators[2], sum(data));
    const Status failure = stream.synchronize();
    EXPECT_EQ(failure.code(), rank == 0 ? StatusCode::kAborted : StatusCode::kRemoteError);
    EXPECT_NE(failure.message().find("aborted"), std::string::npos) << failure.message();
    EXPECT_EQ(stream.synchronize(), failure);
    EXPECT_EQ(stream.failure(), failure);
    EXPECT_FALSE(communicators[2]->async_error().is_ok()) << "it followed in the stream";
    EXPECT_TRUE(communicators[0]->async_error().is_ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Progress, Streams, testing::Values("auto", "thread", "caller"),
                         [](const auto& row) { return row.param; });

// A list of operations, each on a communicator and in a stream, some after an earlier one of
// another stream. One thread per stream makes its calls as soon as the communicator's earlier calls
// were made, so the threads interleave otherwise on each rank.
TEST(StreamsOfSeveralThreads, DoNotDeadlockHoweverTheyInterleave) {
  constexpr int kCommunicators = 4;
  constexpr int kStreams = 4;
  constexpr int kOperations = 120;
  struct Entry {
    int communicator;
    int stream;
    int after;  // an earlier entry; -1: none
  };
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<Entry> entries;
  std::vector<int> lengths(kStreams);
  for (int i = 0; i < kOperations; ++i) {
    const Entry entry{static_cast<int>(random() % kCommunicators),
                      static_cast<int>(random() % kStreams),
                      i > 0 && random() % 3 == 0 ? static_cast<int>(random() % i) : -1};
    entries.push_back(entry);
    ++lengths[entry.stream];
  }
  run_ranks_with(kCommunicators, 2, options_with("auto"), [&](int, Communicators& communicators) {
    std::vector<Stream> streams(kStreams);
    std::vector<std::vector<std::int64_t>> data(kStreams);
    std::vector<Event> events(kOperations);
    std::vector<bool> was_made(kOperations);
    std::mutex mutex;
    std::condition_variable changed;
    const auto may_go = [&](int i) {
      if (entries[i].after >= 0 && !was_made[entries[i].after]) return false;
      for (int j = 0; j < i; ++j) {
        if (entries[j].communicator == entries[i].communicator && !was_made[j]) return false;
      }
      return true;
    };
    std::vector<std::thread> threads;
    for (int s = 0; s < kStreams; ++s) {
      data[s].assign(s == 0 ? 20000 : 5, 1);
      threads.emplace_back([&, s] {
        for (int i = 0; i < kOperations; ++i) {
          if (entries[i].stream != s) continue;
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return may_go(i); });
          const Event after = entries[i].after >= 0 ? events[entries[i].after] : Event();
          lock.unlock();
          streams[s].wait(after);
          EXPECT_TRUE(
              streams[s].start(*communicators[entries[i].communicator], sum(data[s])).is_ok());
          lock.lock();
          events[i] = streams[s].record();
          was_made[i] = true;
          changed.notify_all();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int s = 0; s < kStreams; ++s) {
      EXPECT_TRUE(streams[s].synchronize().is_ok()) << streams[s].failure().message();
      EXPECT_EQ(data[s].front(), power(2, lengths[s]));
      EXPECT_EQ(data[s].back(), power(2, lengths[s]));
    }
  });
}

}  // namespace
}  // namespace polyrail
