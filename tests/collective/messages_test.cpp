// Messages between two ranks: matching, order, memory, failures; and what two ranks do together.
#include <atomic>
#include <cstring>
#include <future>
#include <iostream>
#include <map>
#include <random>

#include "tests/collective/settings.hpp"

namespace polyrail {
namespace {

std::vector<std::uint8_t> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + seed * 31);
  }
  return data;
}

class Messages : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Networks, Messages, kSettings, [](const auto& row) { return row.param; });

TEST_P(Messages, ArriveWholeAtAnySizeAndAlignment) {
  for (const int ranks : {2, 3}) {
    run_ranks(ranks, setting(GetParam()), [&](int rank, Communicator& communicator) {
      const int next = (rank + 1) % ranks;
      const int before = (rank + ranks - 1) % ranks;
      for (const std::size_t bytes : {0, 1, 3, 64, 1000, 8191, 131072, 131073, 1000003, 5000001}) {
        for (const std::size_t shift : {0, 1, 7}) {
          const auto sent = pattern(bytes + shift, static_cast<unsigned>(rank));
          std::vector<std::uint8_t> received(bytes + shift + 8, 0xee);
          const Status status =
              communicator.send_receive(sent.data() + shift, bytes, next, received.data() + shift,
                                        bytes, before, DataType::kUint8, 5);
          ASSERT_TRUE(status.is_ok()) << status.message();
          const auto expected = pattern(bytes + shift, static_cast<unsigned>(before));
          ASSERT_TRUE(std::equal(expected.begin() + static_cast<std::ptrdiff_t>(shift),
                                 expected.end(),
                                 received.begin() + static_cast<std::ptrdiff_t>(shift)))
              << bytes << " bytes";
          ASSERT_TRUE(std::all_of(received.end() - 8, received.end(),
                                  [](std::uint8_t byte) { return byte == 0xee; }));
        }
      }
    });
  }
}

TEST_P(Messages, KnowEveryType) {
  run_ranks(2, setting(GetParam()), [](int rank, Communicator& communicator) {
    for (const DataType type : kAllDataTypes) {
      const std::size_t bytes = 1001 * size_bytes(type);
      auto data = pattern(bytes, 9);
      if (rank == 0) {
        ASSERT_TRUE(communicator.send(data.data(), 1001, type, 1).is_ok());
      } else {
        std::vector<std::uint8_t> received(bytes);
        ASSERT_TRUE(communicator.receive(received.data(), 1001, type, 0).is_ok());
        ASSERT_EQ(received, data) << name(type);
      }
    }
  });
}

TEST_P(Messages, OfOneTagMatchInTheirOrderAndTagsDoNotWaitForEachOther) {
  run_ranks(2, setting(GetParam()), [](int rank, Communicator& communicator) {
    constexpr int kCount = 200;
    constexpr std::uint64_t kMost = 40000;
    std::vector<std::vector<std::int32_t>> data;
    const auto count_of = [](int i) { return i % 7 == 0 ? kMost : std::uint64_t(1 + i % 50); };
    if (rank == 0) {
      std::vector<Work> works;
      for (int i = 0; i < kCount; ++i) {
        data.emplace_back(count_of(i), i);
        works.push_back(communicator.send_async(data.back().data(), data.back().size(),
                                                DataType::kInt32, 1, i % 3));
      }
      for (Work& work : works) ASSERT_TRUE(work.wait().is_ok());
      return;
    }
    // The tags one after the other, backwards: all others are unexpected.
    for (int tag = 2; tag >= 0; --tag) {
      for (int i = tag; i < kCount; i += 3) {
        std::vector<std::int32_t> received(count_of(i), -1);
        const Status status =
            communicator.receive(received.data(), received.size(), DataType::kInt32, 0, tag);
        ASSERT_TRUE(status.is_ok()) << status.message();
        for (const std::int32_t value : received) ASSERT_EQ(value, i);
      }
    }
  });
}

TEST_P(Messages, ThatNobodyReceivesYetDoNotStandInTheWay) {
  run_ranks(2, setting(GetParam()), [](int rank, Communicator& communicator) {
    // More than is taken into memory: what is behind it passes all the same.
    constexpr std::size_t kCount = 1200;
    constexpr std::size_t kBytes = 100000;
    const auto data = pattern(kBytes, 3);
    std::int64_t last = rank == 0 ? 42 : 0;
    if (rank == 0) {
      std::vector<Work> works;
      for (std::size_t i = 0; i < kCount; ++i) {
        works.push_back(communicator.send_async(data.data(), kBytes, DataType::kUint8, 1, 1));
      }
      works.push_back(communicator.send_async(&last, 1, DataType::kInt64, 1, 2));
      std::int64_t sum = 1;
      ASSERT_TRUE(communicator.all_reduce(std::span(&sum, 1), ReduceOp::kSum).is_ok());
      EXPECT_EQ(sum, 2);
      for (Work& work : works) ASSERT_TRUE(work.wait().is_ok());
      return;
    }
    const Status status = communicator.receive(&last, 1, DataType::kInt64, 0, 2);
    ASSERT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(last, 42);
    std::int64_t sum = 1;
    ASSERT_TRUE(communicator.all_reduce(std::span(&sum, 1), ReduceOp::kSum).is_ok());
    std::vector<std::uint8_t> received(kBytes);
    for (std::size_t i = 0; i < kCount; ++i) {
      std::fill(received.begin(), received.end(), 0);
      ASSERT_TRUE(communicator.receive(received.data(), kBytes, DataType::kUint8, 0, 1).is_ok());
      ASSERT_EQ(received, data);
    }
  });
}

TEST_P(Messages, RunInBothDirectionsAndBesideCollectives) {
  constexpr int kRanks = 4;
  run_ranks(kRanks, setting(GetParam()), [](int rank, Communicator& communicator) {
    for (int round = 0; round < 5; ++round) {
      std::vector<std::vector<std::uint8_t>> sent;
      std::vector<std::vector<std::uint8_t>> received;
      std::vector<Work> works;
      std::vector<std::int32_t> reduced(30000, rank + 1);
      Work collective = communicator.all_reduce_async(
          reduced.data(), reduced.data(), reduced.size(), DataType::kInt32, ReduceOp::kSum);
      for (int peer = 0; peer < kRanks; ++peer) {
        for (unsigned k = 0; k < 3; ++k) {
          const std::size_t bytes = 1 + 70001 * k;
          sent.push_back(pattern(bytes, 10 * static_cast<unsigned>(rank) + k));
          received.emplace_back(bytes);
          works.push_back(
              communicator.send_async(sent.back().data(), bytes, DataType::kUint8, peer, k));
          works.push_back(
              communicator.receive_async(received.back().data(), bytes, DataType::kUint8, peer, k));
        }
      }
      for (Work& work : works) {
        const Status status = work.wait();
        ASSERT_TRUE(status.is_ok()) << status.message();
      }
      ASSERT_TRUE(collective.wait().is_ok());
      EXPECT_EQ(reduced[29999], 10);
      for (int peer = 0; peer < kRanks; ++peer) {
        for (unsigned k = 0; k < 3; ++k) {
          ASSERT_EQ(received[3 * static_cast<std::size_t>(peer) + k],
                    pattern(1 + 70001 * k, 10 * static_cast<unsigned>(peer) + k));
        }
      }
    }
  });
}

// A peer that has begun a collective must not hold up the message that this rank waits for first.
TEST_P(Messages, PassACollectiveThatThisRankHasNotBegun) {
  run_ranks(3, setting(GetParam()), [](int rank, Communicator& communicator) {
    std::vector<float> data(200000, 1);
    for (int round = 0; round < 10; ++round) {
      int token = round;
      if (rank == 0) {
        Work work = communicator.all_reduce_async(data.data(), data.data(), data.size(),
                                                  DataType::kFloat32, ReduceOp::kMax);
        ASSERT_TRUE(communicator.send(&token, 1, DataType::kInt32, 1).is_ok());
        ASSERT_TRUE(communicator.receive(&token, 1, DataType::kInt32, 2).is_ok());
        ASSERT_TRUE(work.wait().is_ok());
      } else {
        // Waits for what is behind the collective of the rank before it.
        token = -1;
        ASSERT_TRUE(communicator.receive(&token, 1, DataType::kInt32, rank - 1).is_ok());
        EXPECT_EQ(token, round);
        ASSERT_TRUE(communicator.send(&token, 1, DataType::kInt32, (rank + 1) % 3).is_ok());
        const Status status = communicator.all_reduce(data.data(), data.data(), data.size(),
                                                      DataType::kFloat32, ReduceOp::kMax);
        ASSERT_TRUE(status.is_ok()) << status.message();
      }
      ASSERT_EQ(data[199999], 1);
    }
  });
}

TEST_P(Messages, ToOneselfAreCopies) {
  run_ranks(2, setting(GetParam()), [](int rank, Communicator& communicator) {
    for (const std::size_t bytes : {0, 5, 1000, 1000000}) {
      const auto data = pattern(bytes, 1);
      std::vector<std::uint8_t> received(bytes);
      // Either first.
      Work first = communicator.receive_async(received.data(), bytes, DataType::kUint8, rank, 8);
      ASSERT_TRUE(communicator.send(data.data(), bytes, DataType::kUint8, rank, 8).is_ok());
      ASSERT_TRUE(first.wait().is_ok());
      ASSERT_EQ(received, data);
      std::fill(received.begin(), received.end(), 0);
      first = communicator.send_async(data.data(), bytes, DataType::kUint8, rank, 8);
      ASSERT_TRUE(communicator.receive(received.data(), bytes, DataType::kUint8, rank, 8).is_ok());
      ASSERT_TRUE(first.wait().is_ok());
      ASSERT_EQ(received, data);
    }
    int value = 7;
    ASSERT_TRUE(communicator.send(&value, 1, DataType::kInt32, rank).is_ok()) << "few are copied";
    int received = 0;
    ASSERT_TRUE(communicator.receive(&received, 1, DataType::kInt32, rank).is_ok());
    EXPECT_EQ(received, 7);
  });
}

// 2000 messages among four ranks in a random order, the same on all ranks.
TEST_P(Messages, OfARandomScheduleAllArrive) {
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  constexpr int kRanks = 4;
  run_ranks(kRanks, setting(GetParam()), [&](int rank, Communicator& communicator) {
    std::mt19937 shared(seed);
    std::mt19937 own(seed + 1 + static_cast<unsigned>(rank));
    struct Row {
      int from, to;
      std::uint32_t tag;
      std::size_t bytes;
      unsigned content;
    };
    std::vector<Row> rows;
    for (unsigned i = 0; i < 2000; ++i) {
      const std::size_t kBytes[] = {0, 1, 17, 500, 9000, 60000, 200000};
      std::size_t bytes = kBytes[shared() % 7];
      if (shared() % 200 == 0) bytes = 2000001;
      if (bytes != 0) bytes += shared() % 5;
      rows.push_back({static_cast<int>(shared() % kRanks), static_cast<int>(shared() % kRanks),
                      static_cast<std::uint32_t>(shared() % 4), bytes, i});
    }
    // Each rank starts its part in an order of its own, as far as a tag's order leaves room.
    struct Open {
      Work work;
      std::vector<std::uint8_t> data;
      const Row* row;
      bool is_receive;
    };
    std::map<std::tuple<bool, int, std::uint32_t>, std::vector<const Row*>> lanes;
    for (const Row& row : rows) {
      if (row.from == rank) lanes[{false, row.to, row.tag}].push_back(&row);
      if (row.to == rank) lanes[{true, row.from, row.tag}].push_back(&row);
    }
    std::vector<std::pair<std::tuple<bool, int, std::uint32_t>, std::size_t>> order;
    for (const auto& [lane, list] : lanes) {
      for (std::size_t i = 0; i < list.size(); ++i) order.push_back({lane, 0});
    }
    std::shuffle(order.begin(), order.end(), own);
    std::map<std::tuple<bool, int, std::uint32_t>, std::size_t> next;
    std::vector<std::unique_ptr<Open>> open;
    for (auto& [lane, unused] : order) {
      const Row& row = *lanes[lane][next[lane]++];
      auto one = std::make_unique<Open>();
      one->row = &row;
      one->is_receive = std::get<0>(lane);
      if (one->is_receive) {
        one->data.resize(row.bytes);
        one->work = communicator.receive_async(one->data.data(), row.bytes, DataType::kUint8,
                                               row.from, row.tag);
      } else {
        one->data = pattern(row.bytes, row.content);
        one->work =
            communicator.send_async(one->data.data(), row.bytes, DataType::kUint8, row.to, row.tag);
      }
      open.push_back(std::move(one));
    }
    std::shuffle(open.begin(), open.end(), own);
    for (const auto& one : open) {
      const Status status = one->work.wait();
      ASSERT_TRUE(status.is_ok()) << status.message() << ", seed " << seed;
      if (!one->is_receive) continue;
      ASSERT_EQ(one->data, pattern(one->row->bytes, one->row->content)) << "seed " << seed;
    }
  });
}

TEST_P(Messages, ThatDifferInCountOrTypeFailOnBothRanksWithBothCalls) {
  for (const std::uint64_t count : {4u, 100000u}) {
    for (const bool is_late : {false, true}) {
      for (const bool differs_in_type : {false, true}) {
        run_ranks(2, setting(GetParam()), [&](int rank, Communicator& communicator) {
          std::vector<std::int32_t> data(count + 1);
          Status status;
          if (rank == 0) {
            status = communicator.send(data.data(), count, DataType::kInt32, 1, 6);
            // A short one was copied: its sender learns of it later.
            if (status.is_ok()) {
              status = communicator.receive(data.data(), 1, DataType::kInt32, 1, 7);
            }
          } else {
            std::int32_t other = 0;
            Work work;
            if (!is_late) {
              // So that the receive is there first.
              work = communicator.receive_async(
                  data.data(), differs_in_type ? count : count + 1,
                  differs_in_type ? DataType::kFloat32 : DataType::kInt32, 0, 6);
              status = work.wait();
            } else {
              Work self = communicator.send_async(&other, 1, DataType::kInt32, 1, 9);
              (void)communicator.receive(&other, 1, DataType::kInt32, 1, 9);
              (void)self.wait();
              status = communicator.receive(data.data(), differs_in_type ? count : count + 1,
                                            differs_in_type ? DataType::kFloat32 : DataType::kInt32,
                                            0, 6);
            }
          }
          EXPECT_FALSE(status.is_ok());
          const std::string sent = "send of " + std::to_string(count) + " int32 to rank 1, tag 6";
          const std::string received =
              differs_in_type
                  ? "receive of " + std::to_string(count) + " float from rank 0, tag 6"
                  : "receive of " + std::to_string(count + 1) + " int32 from rank 0, tag 6";
          EXPECT_NE(status.message().find(sent), std::string::npos) << status.message();
          EXPECT_NE(status.message().find(received), std::string::npos) << status.message();
          EXPECT_FALSE(communicator.async_error().is_ok());
        });
      }
    }
  }
}

TEST_P(Messages, ThatNeverComeAreReportedWithPeerTagAndBytes) {
  Options options = setting(GetParam());
  options.operation_timeout_ms = 200;
  std::promise<void> is_over;
  run_ranks(2, options, [&](int rank, Communicator& communicator) {
    if (rank == 1) {  // never sends
      is_over.get_future().wait();
      return;
    }
    std::vector<float> data(100);
    const Status status = communicator.receive(data.data(), 100, DataType::kFloat32, 1, 77);
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    for (const char* word : {"receive of 100 float from rank 1", "tag 77", "400 of 400 bytes"}) {
      EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
    }
    is_over.set_value();
  });
}

TEST_P(Messages, ThatNobodyReceivesAreReported) {
  Options options = setting(GetParam());
  options.operation_timeout_ms = 200;
  std::promise<void> is_over;
  run_ranks(2, options, [&](int rank, Communicator& communicator) {
    if (rank == 1) {
      is_over.get_future().wait();
      return;
    }
    auto data = std::make_unique<std::vector<float>>(1000000);
    const Status status = communicator.send(data->data(), 1000000, DataType::kFloat32, 1, 78);
    data.reset();
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    for (const char* word : {"send of 1000000 float to rank 1", "tag 78", "not received there"}) {
      EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
    }
    is_over.set_value();
  });
}

TEST_P(Messages, EndWhenAnotherThreadAborts) {
  run_ranks(2, setting(GetParam()), [&](int rank, Communicator& communicator) {
    auto data = std::make_unique<std::vector<float>>(300000);
    if (rank == 1) {
      std::thread other([&] { communicator.abort(); });
      const Status status = communicator.receive(data->data(), 5, DataType::kFloat32, 0);
      data.reset();
      EXPECT_EQ(status.code(), StatusCode::kAborted) << status.message();
      other.join();
      return;
    }
    const Status status = communicator.receive(data->data(), 300000, DataType::kFloat32, 1);
    data.reset();
    EXPECT_EQ(status.code(), StatusCode::kRemoteError);
    EXPECT_NE(status.message().find("aborted"), std::string::npos) << status.message();
  });
}

TEST_P(Messages, EndWhenThePeerHasLeft) {
  run_ranks(2, setting(GetParam()), [&](int rank, Communicator& communicator) {
    if (rank == 1) return;  // closes
    int value = 0;
    Status status = communicator.receive(&value, 1, DataType::kInt32, 1);
    EXPECT_EQ(status.code(), StatusCode::kRemoteError) << status.message();
    EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
    status = communicator.send(&value, 1, DataType::kInt32, 1);
    EXPECT_FALSE(status.is_ok());
  });
}

// What was sent before the sender left can still be received.
TEST_P(Messages, OfARankThatIsAboutToLeaveArrive) {
  run_ranks(2, setting(GetParam()), [&](int rank, Communicator& communicator) {
    std::vector<std::int32_t> data(10000, rank);
    if (rank == 1) {
      ASSERT_TRUE(communicator.send(data.data(), 10000, DataType::kInt32, 0).is_ok());
      Work work = communicator.send_async(data.data(), 10000, DataType::kInt32, 0);
      ASSERT_TRUE(work.wait().is_ok());
      return;
    }
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(communicator.receive(data.data(), 10000, DataType::kInt32, 1).is_ok());
      ASSERT_EQ(data[9999], 1);
    }
  });
}

TEST_P(Messages, AveragePairsToTheSameBits) {
  constexpr std::uint64_t kCount = 50001;
  std::vector<std::vector<float>> results(4);
  run_ranks(4, setting(GetParam()), [&](int rank, Communicator& communicator) {
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    std::uniform_real_distribution<float> values(-1, 1);
    const auto draw = [&] {
      std::vector<float> data(kCount);
      for (float& value : data) value = values(random);
      return data;
    };
    // Two pairs at once, each in turn.
    for (const int distance : {1, 2}) {
      const int peer = rank ^ distance;
      std::vector<float> mine = draw();
      std::vector<float> theirs(kCount);
      std::vector<float> data = mine;
      ASSERT_TRUE(
          communicator.exchange(mine.data(), theirs.data(), kCount, DataType::kFloat32, peer)
              .is_ok());
      ASSERT_TRUE(
          communicator.pairwise_average(data.data(), kCount, DataType::kFloat32, peer).is_ok());
      for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(data[i], (mine[i] + theirs[i]) / 2);
      results[static_cast<std::size_t>(rank)] = data;
      std::vector<float> again(kCount);
      ASSERT_TRUE(communicator.exchange(data.data(), again.data(), kCount, DataType::kFloat32, peer)
                      .is_ok());
      ASSERT_EQ(std::memcmp(data.data(), again.data(), 4 * kCount), 0);
    }
    float alone = 3;
    ASSERT_TRUE(communicator.pairwise_average(&alone, 1, DataType::kFloat32, rank).is_ok());
    EXPECT_EQ(alone, 3);
    ASSERT_TRUE(communicator.pairwise_average(nullptr, 0, DataType::kFloat32, rank ^ 1).is_ok());
  });
}

TEST_P(Messages, AveragePairsInACircle) {
  constexpr int kRanks = 3;
  run_ranks(kRanks, setting(GetParam()), [&](int rank, Communicator& communicator) {
    for (const std::uint64_t count : {1u, 40000u, 600000u}) {
      std::vector<double> up(count, rank);
      std::vector<double> down(count, rank);
      // 0 begins with 1, 1 with 2, 2 with 0.
      const int next = (rank + 1) % kRanks;
      const int before = (rank + 2) % kRanks;
      Work first = communicator.pairwise_average_async(up.data(), count, DataType::kFloat64, next);
      Work second =
          communicator.pairwise_average_async(down.data(), count, DataType::kFloat64, before);
      ASSERT_TRUE(first.wait().is_ok());
      ASSERT_TRUE(second.wait().is_ok());
      EXPECT_EQ(up[count - 1], (rank + next) / 2.0);
      EXPECT_EQ(down[count - 1], (rank + before) / 2.0);
    }
  });
}

TEST_P(Messages, BetweenAnExchangeAndAnAverageAreAnError) {
  run_ranks(2, setting(GetParam()), [&](int rank, Communicator& communicator) {
    float data[2] = {1, 2};
    const Status status = rank == 0
                              ? communicator.exchange(&data[0], &data[1], 1, DataType::kFloat32, 1)
                              : communicator.pairwise_average(&data[0], 1, DataType::kFloat32, 0);
    EXPECT_FALSE(status.is_ok());
    EXPECT_NE(status.message().find("exchange of 1 float"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("pairwise_average of 1 float"), std::string::npos)
        << status.message();
  });
}

TEST(MessageProgress, IsMadeInEveryMode) {
  for (const char* mode : {"caller", "thread", "auto"}) {
    Options options = quick_options("shm");
    options.progress = mode;
    run_ranks(3, options, [&](int rank, Communicator& communicator) {
      std::vector<std::int64_t> token(30000, 0);
      const int next = (rank + 1) % 3;
      const int before = (rank + 2) % 3;
      for (int round = 0; round < 20; ++round) {
        if (rank != 0) {
          ASSERT_TRUE(communicator.receive(token.data(), 30000, DataType::kInt64, before).is_ok());
        }
        ++token[29999];
        ASSERT_TRUE(communicator.send(token.data(), 30000, DataType::kInt64, next).is_ok());
        if (rank == 0) {
          ASSERT_TRUE(communicator.receive(token.data(), 30000, DataType::kInt64, before).is_ok());
          ASSERT_EQ(token[29999], 3 * (round + 1));
        }
      }
      std::vector<std::int64_t> in(30000);
      Work receive = communicator.receive_async(in.data(), 30000, DataType::kInt64, before);
      Work send = communicator.send_async(token.data(), 30000, DataType::kInt64, next);
      while (!receive.is_done() || !send.is_done()) std::this_thread::yield();
      ASSERT_TRUE(receive.wait().is_ok());
      ASSERT_TRUE(send.wait().is_ok());
    });
  }
}

TEST(MessageRails, ShareALargeMessage) {
  Options options = quick_options("loopback");
  options.virtual_rails = 3;
  options.fault = "*:rate=40MB/s";
  options.calibration_ms = 50;
  run_ranks(2, options, [](int rank, Communicator& communicator) {
    const auto before = communicator.rails();
    constexpr std::size_t kBytes = 8 << 20;
    std::vector<std::uint8_t> data = pattern(kBytes, 2);
    if (rank == 0) {
      ASSERT_TRUE(communicator.send(data.data(), kBytes, DataType::kUint8, 1).is_ok());
      const auto after = communicator.rails();
      ASSERT_EQ(after.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_GT(after[i].bytes_sent - before[i].bytes_sent, kBytes / 10) << after[i].name;
      }
    } else {
      std::vector<std::uint8_t> received(kBytes);
      ASSERT_TRUE(communicator.receive(received.data(), kBytes, DataType::kUint8, 0).is_ok());
      ASSERT_EQ(received, data);
    }
  });
}

TEST(MessageRails, MayFailUnderWay) {
  Options options = quick_options("loopback");
  options.virtual_rails = 3;
  options.fault = "loopback1:down_after=3MB;loopback2:down_after=9MB";
  run_ranks(2, options, [](int rank, Communicator& communicator) {
    constexpr std::size_t kBytes = 8 << 20;
    for (unsigned round = 0; round < 8; ++round) {
      std::vector<std::uint8_t> data = pattern(kBytes, round);
      std::vector<std::uint8_t> received(kBytes);
      const Status status = communicator.send_receive(
          data.data(), kBytes, 1 - rank, received.data(), kBytes, 1 - rank, DataType::kUint8);
      ASSERT_TRUE(status.is_ok()) << status.message();
      ASSERT_EQ(received, data);
    }
  });
}

TEST(MessageArguments, AreRefusedWithTheirNames) {
  run_ranks(1, quick_options("loopback"), [](int, Communicator& communicator) {
    float data[8] = {};
    const auto expect = [](const Status& status, const std::string& word) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << word;
      EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
    };
    expect(communicator.send(nullptr, 1, DataType::kFloat32, 0), "source is null");
    expect(communicator.receive(nullptr, 1, DataType::kFloat32, 0), "target is null");
    expect(communicator.send(data, 1, static_cast<DataType>(99), 0), "data type 99");
    expect(communicator.send(data, 1, DataType::kFloat32, 1), "no rank 1");
    expect(communicator.send(data, 1, DataType::kFloat32, -1), "no rank -1");
    expect(communicator.receive(data, ~std::uint64_t{0}, DataType::kFloat32, 0), "do not fit");
    expect(communicator.exchange(data, data + 1, 2, DataType::kFloat32, 0), "overlap");
    expect(communicator.pairwise_average(data, 2, DataType::kInt32, 0), "floating");
    expect(communicator.pairwise_average_async(data, 2, DataType::kInt32, 0).wait(), "floating");
    EXPECT_TRUE(communicator.run(std::span<const Message>()).is_ok()) << "nothing is fine";
    EXPECT_TRUE(communicator.async_error().is_ok());
  });
}

}  // namespace
}  // namespace polyrail
