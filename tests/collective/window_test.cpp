// Windows: puts and averages that the owner of the memory takes no part in.
#include <atomic>
#include <cmath>
#include <iostream>
#include <random>

#include "tests/collective/settings.hpp"

namespace polyrail {
namespace {

class Windows : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Networks, Windows, kSettings, [](const auto& row) { return row.param; });

std::unique_ptr<Window> make_window(Communicator& communicator, std::uint64_t slots,
                                    std::uint64_t bytes) {
  Result<std::unique_ptr<Window>> window = communicator.create_window(slots, bytes);
  EXPECT_TRUE(window.is_ok()) << window.status().message();
  return window.is_ok() ? std::move(window).value() : nullptr;
}

// Looks until the slot has a version of at least so much.
std::uint64_t await_version(Window& window, std::uint64_t slot, std::uint64_t version, void* data) {
  for (;;) {
    const Result<std::uint64_t> read = window.read(slot, data);
    EXPECT_TRUE(read.is_ok()) << read.status().message();
    if (!read.is_ok() || read.value() >= version) return read.is_ok() ? read.value() : 0;
    std::this_thread::yield();
  }
}

void barrier(Communicator& communicator) {
  std::int32_t one = 1;
  ASSERT_TRUE(communicator.all_reduce(std::span(&one, 1), ReduceOp::kSum).is_ok());
  ASSERT_EQ(one, communicator.rank_count());
}

TEST_P(Windows, ShowWhatOthersPut) {
  for (const std::uint64_t count : {1u, 1000u, 300001u}) {
    run_ranks(3, setting(GetParam()), [&](int rank, Communicator& communicator) {
      const auto window = make_window(communicator, 3, 4 * count);
      ASSERT_NE(window, nullptr);
      std::vector<std::int32_t> data(count, -1);
      const Result<std::uint64_t> fresh = window->read(0, data.data());
      ASSERT_TRUE(fresh.is_ok());
      barrier(communicator);
      for (int peer = 0; peer < 3; ++peer) {
        std::vector<std::int32_t> mine(count, 10 * rank + peer);
        const Status status = window->put(peer, static_cast<std::uint64_t>(rank), mine.data(), 1);
        ASSERT_TRUE(status.is_ok()) << status.message();
      }
      for (int peer = 0; peer < 3; ++peer) {
        ASSERT_EQ(await_version(*window, static_cast<std::uint64_t>(peer), 1, data.data()), 1u);
        for (const std::int32_t value : data) ASSERT_EQ(value, 10 * peer + rank);
      }
      barrier(communicator);
    });
  }
}

TEST_P(Windows, ArriveWhileTheOwnerDoesSomethingElse) {
  run_ranks(2, setting(GetParam()), [&](int rank, Communicator& communicator) {
    const auto window = make_window(communicator, 1, 1000);
    std::vector<std::uint8_t> data(1000, 5);
    if (rank == 0) {
      ASSERT_TRUE(window->put(1, 0, data.data(), 3).is_ok());
      // Its answer comes by a window as well.
      await_version(*window, 0, 4, data.data());
      EXPECT_EQ(data[999], 6);
    } else {
      await_version(*window, 0, 3, data.data());
      EXPECT_EQ(data[999], 5);
      data.assign(1000, 6);
      ASSERT_TRUE(window->put(0, 0, data.data(), 4).is_ok());
    }
    barrier(communicator);
  });
}

TEST_P(Windows, KeepTheNewestVersionAndThatOfTheHighestRank) {
  run_ranks(3, setting(GetParam()), [&](int rank, Communicator& communicator) {
    const auto window = make_window(communicator, 2, 8);
    // All write the same versions to slot 0 of rank 0, in orders of their own.
    for (const std::uint64_t version : {7u, 9u, 8u, 1u}) {
      const std::uint64_t value = 100 * version + static_cast<std::uint64_t>(rank);
      ASSERT_TRUE(window->put(0, 0, &value, version).is_ok());
    }
    // A later put of the same rank over the same rail may pass on another, so its arrival says
    // nothing: rank 0 looks until the last word is there.
    std::uint64_t value = 0;
    if (rank == 0) {
      while (value != 902) await_version(*window, 0, 9, &value);
      const std::uint64_t older = 1;
      ASSERT_TRUE(window->put(0, 0, &older, 8).is_ok());
      ASSERT_EQ(window->read(0, &value).value(), 9u);
      EXPECT_EQ(value, 902u);
    }
    barrier(communicator);
    if (rank == 0) {
      ASSERT_EQ(window->read(0, &value).value(), 9u);
      EXPECT_EQ(value, 902u);
    }
    barrier(communicator);
  });
}

// Writers hammer versions; readers check that all elements of a slot belong to its version.
TEST_P(Windows, NeverShowHalfAPut) {
  constexpr std::size_t kCount = 100003;  // several slices
  constexpr std::uint64_t kVersions = 40;
  run_ranks(3, setting(GetParam()), [&](int rank, Communicator& communicator) {
    const auto window = make_window(communicator, 2, 8 * kCount);
    std::atomic<bool> is_over{false};
    std::atomic<int> torn{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) {
      readers.emplace_back([&] {
        std::vector<std::uint64_t> data(kCount);
        std::uint64_t last = 0;
        while (!is_over.load()) {
          for (const std::uint64_t slot : {0u, 1u}) {
            const std::uint64_t version = window->read(slot, data.data()).value();
            for (const std::uint64_t value : data) torn += value != version;
            if (slot == 0) {
              torn += version < last;
              last = version;
            }
          }
        }
      });
    }
    std::thread second_writer([&] {
      std::vector<std::uint64_t> data(kCount);
      for (std::uint64_t version = 1; version <= kVersions; ++version) {
        data.assign(kCount, version);
        const Status status = window->put((rank + 2) % 3, 1, data.data(), version);
        EXPECT_TRUE(status.is_ok()) << status.message();
      }
    });
    std::vector<std::uint64_t> data(kCount);
    for (std::uint64_t version = 1; version <= kVersions; ++version) {
      data.assign(kCount, version);
      for (const std::uint64_t slot : {0u, 1u}) {
        const Status status = window->put((rank + 1) % 3, slot, data.data(), version);
        EXPECT_TRUE(status.is_ok()) << status.message();
      }
      if (version % 15 == 0) barrier(communicator);
    }
    second_writer.join();
    await_version(*window, 0, kVersions, data.data());
    await_version(*window, 1, kVersions, data.data());
    is_over = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(torn.load(), 0);
    barrier(communicator);
  });
}

// Every rank averages with every other, whatever the others do: no deadlock, and the sum stays.
TEST_P(Windows, KeepTheSumWhenAllGossip) {
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  for (const std::size_t count : {1u, 5003u}) {
    constexpr int kRanks = 4;
    std::vector<double> sums(kRanks);
    run_ranks(kRanks, setting(GetParam()), [&](int rank, Communicator& communicator) {
      const auto window = make_window(communicator, 1, 8 * count);
      // Values that halve exactly for long: the sum is exact as well.
      std::vector<double> slot(count, std::ldexp(1 + rank, 40));
      ASSERT_TRUE(window->put(rank, 0, slot.data(), 1).is_ok());
      std::vector<double> mine(count, std::ldexp(100 * (1 + rank), 40));
      barrier(communicator);
      std::mt19937 random(seed + static_cast<unsigned>(rank));
      for (int round = 0; round < 30; ++round) {
        // Cycles on purpose in even rounds.
        const int peer = round % 2 == 0 ? (rank + 1 + round / 2 % 3) % kRanks
                                        : static_cast<int>(random() % kRanks);
        const Status status = window->average(peer, 0, mine.data(), DataType::kFloat64);
        ASSERT_TRUE(status.is_ok()) << status.message();
        for (const double value : mine) ASSERT_EQ(value, mine[0]);
      }
      barrier(communicator);
      const std::uint64_t version = window->read(0, slot.data()).value();
      EXPECT_GT(version, 1u);
      for (const double value : slot) ASSERT_EQ(value, slot[0]);
      sums[static_cast<std::size_t>(rank)] = slot[0] + mine[0];
      barrier(communicator);
    });
    const double sum = sums[0] + sums[1] + sums[2] + sums[3];
    const double expected = std::ldexp(101 * (1 + 2 + 3 + 4), 40);
    // 120 averages, each rounding two values by half a unit in the last place at most.
    EXPECT_NEAR(sum / expected, 1, 240 * 0x1p-53) << "seed " << seed;
  }
}

TEST_P(Windows, AverageGivesBothTheSame) {
  run_ranks(2, setting(GetParam()), [&](int rank, Communicator& communicator) {
    const auto window = make_window(communicator, 2, 4000);
    std::vector<float> data(1000, 3);
    if (rank == 1) {
      ASSERT_TRUE(window->put(1, 1, data.data(), 7).is_ok());
    }
    barrier(communicator);
    if (rank == 0) {
      data.assign(1000, 0.1F);
      ASSERT_TRUE(window->average(1, 1, data.data(), DataType::kFloat32).is_ok());
      for (const float value : data) ASSERT_EQ(value, (3 + 0.1F) / 2);
    }
    barrier(communicator);
    if (rank == 1) {
      EXPECT_EQ(window->read(1, data.data()).value(), 8u);
      for (const float value : data) ASSERT_EQ(value, (3 + 0.1F) / 2);
    }
    barrier(communicator);
  });
}

// A collective that a peer has begun holds up neither puts nor the answers to averages.
TEST_P(Windows, WorkBesideACollectiveThatThisRankHasNotBegun) {
  run_ranks(2, setting(GetParam()), [&](int rank, Communicator& communicator) {
    const auto window = make_window(communicator, 1, 80000);
    std::vector<float> reduced(100000, 1);
    std::vector<float> data(20000, 1);
    Work work;
    if (rank == 1) {
      work = communicator.all_reduce_async(reduced.data(), reduced.data(), reduced.size(),
                                           DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(window->put(0, 0, data.data(), 1).is_ok());
    } else {
      await_version(*window, 0, 1, data.data());
      for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(window->average(1, 0, data.data(), DataType::kFloat32).is_ok());
      }
      work = communicator.all_reduce_async(reduced.data(), reduced.data(), reduced.size(),
                                           DataType::kFloat32, ReduceOp::kSum);
    }
    const Status status = work.wait();
    ASSERT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(reduced[99999], 2);
    barrier(communicator);
  });
}

TEST_P(Windows, MayEndAtDifferentTimes) {
  run_ranks(3, setting(GetParam()), [&](int rank, Communicator& communicator) {
    auto window = make_window(communicator, 1, 100000);
    std::vector<float> data(25000, 1);
    if (rank == 0) {
      window.reset();
    } else {
      // Some are dropped, some refused, none does harm.
      Status status;
      for (std::uint64_t version = 1; status.is_ok(); ++version) {
        status = window->put(0, 0, data.data(), version);
      }
      EXPECT_EQ(status.code(), StatusCode::kInvalidUsage);
      EXPECT_NE(status.message().find("ended its window"), std::string::npos) << status.message();
      status = window->average(0, 0, data.data(), DataType::kFloat32);
      EXPECT_EQ(status.code(), StatusCode::kInvalidUsage);
      EXPECT_EQ(data[24999], 1);
    }
    barrier(communicator);
    EXPECT_TRUE(communicator.async_error().is_ok());
    // Another one beside it.
    const auto second = make_window(communicator, 1, 4);
    ASSERT_TRUE(second->put((rank + 1) % 3, 0, data.data(), 1).is_ok());
    await_version(*second, 0, 1, data.data());
    barrier(communicator);
  });
}

// The one who ends does not know of the averages that are under way to it.
TEST_P(Windows, ThatEndRefuseTheAveragesUnderWay) {
  run_ranks(2, setting(GetParam()), [&](int rank, Communicator& communicator) {
    auto window = make_window(communicator, 1, 1000000);
    std::vector<float> data(250000, 1);
    if (rank == 0) {
      window.reset();
    } else {
      Status status;
      for (int i = 0; i < 1000 && status.is_ok(); ++i) {
        status = window->average(0, 0, data.data(), DataType::kFloat32);
      }
      EXPECT_EQ(status.code(), StatusCode::kInvalidUsage) << status.message();
    }
    barrier(communicator);
  });
}

TEST(WindowProgress, IsMadeInEveryMode) {
  for (const char* mode : {"caller", "thread", "auto"}) {
    Options options = quick_options("shm");
    options.progress = mode;
    run_ranks(2, options, [&](int rank, Communicator& communicator) {
      auto window = make_window(communicator, 1, 8);
      for (std::uint64_t version = 1; version < 50; ++version) {
        std::uint64_t value = version;
        ASSERT_TRUE(window->put(1 - rank, 0, &value, version).is_ok());
        await_version(*window, 0, version, &value);
        if (version % 10 == 0) {
          barrier(communicator);
          int token = 0;
          ASSERT_TRUE(
              communicator.send_receive(&rank, 1, 1 - rank, &token, 1, 1 - rank, DataType::kInt32)
                  .is_ok());
          EXPECT_EQ(token, 1 - rank);
          EXPECT_FALSE(communicator.rails().empty());
        }
      }
      barrier(communicator);
      window.reset();
      barrier(communicator);
    });
  }
}

TEST(WindowArguments, AreRefusedWithTheirNames) {
  run_ranks(2, quick_options("loopback"), [](int, Communicator& communicator) {
    const auto window = make_window(communicator, 4, 12);
    double data[8] = {};
    const auto expect = [](const Status& status, const std::string& word) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << word;
      EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
    };
    expect(window->put(2, 0, data, 1), "no rank 2");
    expect(window->put(-1, 0, data, 1), "no rank -1");
    expect(window->put(0, 4, data, 1), "no slot 4");
    expect(window->put(1, 0, nullptr, 1), "data is null");
    expect(window->put(1, 0, data, 0), "versions begin with 1");
    expect(window->read(4, data).status(), "no slot 4");
    expect(window->read(0, nullptr).status(), "data is null");
    expect(window->average(1, 0, data, DataType::kInt32), "not a floating-point");
    expect(window->average(1, 0, data, DataType::kFloat64), "no whole number");
    expect(window->average_async(1, 4, data, DataType::kFloat32).wait(), "no slot 4");
    EXPECT_TRUE(communicator.async_error().is_ok());
    barrier(communicator);
  });
}

TEST(WindowCreation, OfSizesThatDifferOrMakeNoSenseFailsOnAllRanks) {
  run_ranks(3, quick_options("shm"), [](int rank, Communicator& communicator) {
    Result<std::unique_ptr<Window>> window = communicator.create_window(2, rank == 1 ? 16 : 8);
    ASSERT_FALSE(window.is_ok());
    EXPECT_NE(window.status().message().find("2 slots of 16 bytes"), std::string::npos)
        << window.status().message();
    EXPECT_NE(window.status().message().find("2 slots of 8 bytes"), std::string::npos)
        << window.status().message();
    EXPECT_FALSE(communicator.create_window(0, 8).is_ok());
    EXPECT_FALSE(communicator.create_window(rank == 2 ? 0 : 1, 8).is_ok());
    EXPECT_FALSE(communicator.create_window(~std::uint64_t{0}, ~std::uint64_t{0}).is_ok());
    // Nothing is broken.
    window = communicator.create_window(1, 8);
    ASSERT_TRUE(window.is_ok()) << window.status().message();
    barrier(communicator);
  });
}

TEST(WindowEnd, MayComeAfterThatOfItsCommunicator) {
  std::vector<std::unique_ptr<Window>> windows(2);
  run_ranks(2, quick_options("loopback"), [&](int rank, Communicator& communicator) {
    windows[static_cast<std::size_t>(rank)] = make_window(communicator, 1, 8);
    barrier(communicator);
  });
  std::uint64_t value = 1;
  EXPECT_FALSE(windows[0]->put(1, 0, &value, 1).is_ok());
  EXPECT_TRUE(windows[0]->put(0, 0, &value, 1).is_ok());
  EXPECT_TRUE(windows[0]->read(0, &value).is_ok());
}

TEST(WindowFailure, IsToldToWhoPutsOrAverages) {
  run_ranks(2, quick_options("shm"), [&](int rank, Communicator& communicator) {
    const auto window = make_window(communicator, 1, 80000);
    std::vector<float> data(20000, 1);
    if (rank == 0) {
      communicator.abort();
    } else {
      Status status;
      while (status.is_ok()) status = window->average(0, 0, data.data(), DataType::kFloat32);
      EXPECT_NE(status.message().find("aborted"), std::string::npos) << status.message();
    }
    EXPECT_FALSE(window->put(1 - rank, 0, data.data(), 1).is_ok());
  });
}

}  // namespace
}  // namespace polyrail
