// Groups: one thread makes the calls of several ranks, and small neighbours become one operation.
#include <array>
#include <cstdlib>

#include <polyrail/polyrail.h>

#include "tests/collective/ranks.hpp"

namespace polyrail {
namespace {

Options options_with(const std::string& progress) {
  Options options = quick_options("shm,loopback");
  options.progress = progress;
  return options;
}

Call sum(std::vector<std::int64_t>& data) {
  return Call::all_reduce(data.data(), data.data(), data.size(), DataType::kInt64, ReduceOp::kSum);
}

class Groups : public testing::TestWithParam<std::string> {};

TEST_P(Groups, LetOneThreadDriveSeveralRanks) {
  auto made = make_communicators(2, 3, options_with(GetParam()));
  std::vector<std::vector<std::int64_t>> data(6);
  for (int round = 0; round < 3; ++round) {
    Group group;
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t rank = 0; rank < 3; ++rank) {
        data[3 * i + rank].assign(i == 0 ? 4 : 100000, static_cast<std::int64_t>(10 * rank + i));
        ASSERT_TRUE(group.add(*made[i][rank], sum(data[3 * i + rank])).is_ok());
      }
    }
    ASSERT_TRUE(group.end().is_ok());
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(data[rank], std::vector<std::int64_t>(4, 30));
      EXPECT_EQ(data[3 + rank], std::vector<std::int64_t>(100000, 33));
    }
  }
  end_together(made);
}

TEST_P(Groups, GiveToStreamsWithoutWaiting) {
  auto made = make_communicators(1, 2, options_with(GetParam()));
  std::vector<std::vector<std::int64_t>> data(2, std::vector<std::int64_t>(1000, 1));
  std::vector<Stream> streams(2);
  for (int i = 0; i < 10; ++i) {
    Group group;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(group.add(*made[0][rank], sum(data[rank]), &streams[rank]).is_ok());
    }
    ASSERT_TRUE(group.end().is_ok());
  }
  for (bool are_done = false; !are_done;) {  // pushes both on, if callers have to
    are_done = streams[0].is_done();
    are_done &= streams[1].is_done();
    std::this_thread::yield();
  }
  EXPECT_TRUE(streams[0].synchronize().is_ok());
  EXPECT_TRUE(streams[1].synchronize().is_ok());
  EXPECT_EQ(data[0], std::vector<std::int64_t>(1000, 1 << 10));
  EXPECT_EQ(data[1], data[0]);
  end_together(made);
}

INSTANTIATE_TEST_SUITE_P(Progress, Groups, testing::Values("auto", "thread", "caller"),
                         [](const auto& row) { return row.param; });

TEST(Group, StartsNothingAfterAWrongCall) {
  run_ranks(2, options_with("auto"), [](int, Communicator& communicator) {
    std::vector<std::int64_t> data(10, 1);
    Group group;
    EXPECT_TRUE(group.add(communicator, sum(data)).is_ok());
    const Call wrong = Call::all_reduce(nullptr, data.data(), 1, DataType::kInt64, ReduceOp::kSum);
    const Status refused = group.add(communicator, wrong);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(group.end(), refused);
    EXPECT_EQ(data[0], 1);
    EXPECT_TRUE(group.end().is_ok()) << "an empty group is none of a failure";
    EXPECT_TRUE(communicator.run(sum(data)).is_ok());
    EXPECT_EQ(data[0], 2);
  });
}

TEST(Group, ReportsTheFailureOfAnOperation) {
  run_ranks_with(2, 2, options_with("auto"), [](int rank, Communicators& communicators) {
    std::vector<std::int64_t> data(10, 1);
    std::vector<std::int64_t> other(10, 1);
    if (rank == 0) communicators[1]->abort();
    Group group;
    ASSERT_TRUE(group.add(*communicators[0], sum(data)).is_ok());
    ASSERT_TRUE(group.add(*communicators[1], sum(other)).is_ok());
    EXPECT_EQ(group.end().code(), rank == 0 ? StatusCode::kAborted : StatusCode::kRemoteError);
    EXPECT_EQ(data[0], 2) << "the others are done all the same";
  });
}

// Types, operators and sizes between which a neighbour is or is not taken along.
TEST(FusedCalls, GiveWhatSingleOnesGive) {
  run_ranks(3, options_with("auto"), [](int rank, Communicator& communicator) {
    struct Row {
      std::size_t count;
      DataType type;
      ReduceOp op;
    };
    constexpr Row kRows[] = {
        {3, DataType::kFloat32, ReduceOp::kSum},     {0, DataType::kFloat32, ReduceOp::kSum},
        {1000, DataType::kFloat32, ReduceOp::kSum},  {5, DataType::kInt64, ReduceOp::kSum},
        {7, DataType::kInt64, ReduceOp::kSum},       {7, DataType::kInt64, ReduceOp::kMax},
        {1, DataType::kInt64, ReduceOp::kMax},       {9, DataType::kInt64, ReduceOp::kMin},
        {4, DataType::kInt64, ReduceOp::kProd},      {11, DataType::kInt64, ReduceOp::kProd},
        {6, DataType::kFloat32, ReduceOp::kAvg},     {2, DataType::kFloat32, ReduceOp::kAvg},
        {60000, DataType::kFloat32, ReduceOp::kSum}, {6000, DataType::kFloat32, ReduceOp::kSum},
        {70000, DataType::kFloat32, ReduceOp::kSum}, {1, DataType::kFloat32, ReduceOp::kSum},
    };
    constexpr std::size_t kCount = std::size(kRows);
    std::vector<std::vector<std::byte>> inputs(kCount);
    std::vector<std::vector<std::byte>> fused(kCount);
    std::vector<std::vector<std::byte>> single(kCount);
    Group group;
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto& [count, type, op] = kRows[i];
      const std::size_t bytes = count * size_bytes(type);
      for (auto* buffer : {&inputs[i], &fused[i], &single[i]}) buffer->resize(bytes + 1);
      for (std::size_t k = 0; k < count; ++k) {
        const auto value = static_cast<int>(3 * ((rank + 1) * (i + 1) + k) % 60);
        if (type == DataType::kFloat32) {
          reinterpret_cast<float*>(inputs[i].data())[k] = static_cast<float>(value);
        } else {
          reinterpret_cast<std::int64_t*>(inputs[i].data())[k] = value;
        }
      }
      // Ranks need not agree on what is in place, as long as it is fused.
      const bool is_in_place = rank == 1 && i % 2 == 0 && i < 12;
      if (is_in_place) fused[i] = inputs[i];
      const void* input = is_in_place ? fused[i].data() : inputs[i].data();
      ASSERT_TRUE(group.add(communicator, Call::all_reduce(input, fused[i].data(), count, type, op))
                      .is_ok());
    }
    const Status status = group.end();
    ASSERT_TRUE(status.is_ok()) << status.message();
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto& [count, type, op] = kRows[i];
      ASSERT_TRUE(
          communicator.all_reduce(inputs[i].data(), single[i].data(), count, type, op).is_ok());
      EXPECT_EQ(fused[i], single[i]) << i;
    }
  });
}

// What one rank makes of several calls fits what another one calls at once.
TEST(FusedCalls, AreOneOperation) {
  run_ranks(2, options_with("auto"), [](int rank, Communicator& communicator) {
    std::vector<std::int64_t> data = {1, 2, 3};
    if (rank == 0) {
      Group group;
      for (std::int64_t& value : data) {
        ASSERT_TRUE(group
                        .add(communicator,
                             Call::all_reduce(&value, &value, 1, DataType::kInt64, ReduceOp::kSum))
                        .is_ok());
      }
      EXPECT_TRUE(group.end().is_ok());
    } else {
      EXPECT_TRUE(communicator.run(sum(data)).is_ok());
    }
    EXPECT_EQ(data, (std::vector<std::int64_t>{2, 4, 6}));
    EXPECT_TRUE(communicator.async_error().is_ok());
  });
}

// Messages are not the same on all ranks, collectives are.
TEST(FusedCalls, AreFusedAcrossWhatIsNoCollective) {
  run_ranks_with(2, 2, options_with("auto"), [](int rank, Communicators& communicators) {
    std::vector<std::int64_t> data = {1, 2};
    std::vector<std::int64_t> other(2, 1);
    Group group;
    for (std::int64_t& value : data) {
      const Call call = Call::all_reduce(&value, &value, 1, DataType::kInt64, ReduceOp::kSum);
      ASSERT_TRUE(group.add(*communicators[0], call).is_ok());
      if (rank == 1 || value != 1) continue;
      // Stands for one.
      ASSERT_TRUE(group
                      .add(*communicators[0],
                           [&](std::span<const Work> after) {
                             return communicators[1]->start(sum(other), after);
                           })
                      .is_ok());
    }
    EXPECT_TRUE((rank == 0 ? ok() : communicators[1]->run(sum(other))).is_ok());
    EXPECT_TRUE(group.end().is_ok());
    EXPECT_EQ(data, (std::vector<std::int64_t>{2, 4}));
    EXPECT_EQ(other[0], 2);
  });
}

TEST(FusedCalls, OnAStreamTakeWhatCameBefore) {
  run_ranks_with(2, 2, options_with("auto"), [](int, Communicators& communicators) {
    std::vector<std::int64_t> data(30000, 1);
    std::vector<std::int64_t> other(2, 1);
    Stream stream;
    ASSERT_TRUE(stream.start(*communicators[1], sum(data)).is_ok());
    Group group;
    ASSERT_TRUE(
        group
            .add(*communicators[0],
                 Call::all_reduce(data.data(), data.data(), 10, DataType::kInt64, ReduceOp::kSum),
                 &stream)
            .is_ok());
    ASSERT_TRUE(group.add(*communicators[0], sum(other), &stream).is_ok());
    ASSERT_TRUE(group.end().is_ok());
    ASSERT_TRUE(stream.start(*communicators[1], sum(data)).is_ok());
    ASSERT_TRUE(stream.synchronize().is_ok());
    EXPECT_EQ(data[9], 8);
    EXPECT_EQ(data[10], 4);
    EXPECT_EQ(other[1], 2);
  });
}

TEST(FusedCalls, ThatDoNotFitTogetherAreRefused) {
  run_ranks(1, options_with("auto"), [](int, Communicator& communicator) {
    std::vector<std::int64_t> data(kMostFusedBytes / 8, 1);
    const Call full = sum(data);
    Call other = full;
    other.count = 1;
    EXPECT_TRUE(communicator.start_fused({&full, 1}, {}).wait().is_ok());
    const std::array<Call, 2> too_many = {full, other};
    EXPECT_EQ(communicator.start_fused(too_many, {}).wait().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(communicator.start_fused({}, {}).wait().code(), StatusCode::kInvalidArgument);
    std::array<Call, 2> unlike = {other, other};
    unlike[1].reduction = ReduceOp::kMax;
    EXPECT_EQ(communicator.start_fused(unlike, {}).wait().code(), StatusCode::kInvalidArgument);
    std::array<Call, 2> null = {other, other};
    null[1].input = nullptr;
    EXPECT_EQ(communicator.start_fused(null, {}).wait().code(), StatusCode::kInvalidArgument);
  });
}

// --- the C API

class GroupsOfTheCApi : public testing::Test {
 protected:
  static constexpr int kRanks = 3;
  void SetUp() override {
    setenv("POLYRAIL_CALIBRATION_MS", "10", 1);
    setenv("POLYRAIL_LOG_LEVEL", "off", 1);
    ASSERT_EQ(polyrailCommInitAll(comms_.data(), kRanks, nullptr), polyrailSuccess)
        << polyrailGetLastError(nullptr);
  }
  void TearDown() override {
    for (polyrailComm_t comm : comms_) EXPECT_EQ(polyrailCommDestroy(comm), polyrailSuccess);
    unsetenv("POLYRAIL_CALIBRATION_MS");
    unsetenv("POLYRAIL_LOG_LEVEL");
  }
  polyrailResult_t all_reduce(int rank, float* data, polyrailStream_t stream = nullptr) {
    return polyrailAllReduce(data, data, 1, polyrailFloat, polyrailSum, comms_[rank], stream);
  }
  std::array<polyrailComm_t, kRanks> comms_{};
};

TEST_F(GroupsOfTheCApi, LetOneThreadDriveAllRanks) {
  float data[kRanks] = {1, 2, 4};
  ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    int own = -1;
    EXPECT_EQ(polyrailCommUserRank(comms_[rank], &own), polyrailSuccess);
    EXPECT_EQ(own, rank);
    ASSERT_EQ(all_reduce(rank, &data[rank]), polyrailSuccess);
  }
  ASSERT_EQ(polyrailGroupEnd(), polyrailSuccess) << polyrailGetLastError(nullptr);
  for (float value : data) EXPECT_EQ(value, 7);
}

TEST_F(GroupsOfTheCApi, Nest) {
  float data[kRanks] = {1, 2, 4};
  ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
    ASSERT_EQ(all_reduce(rank, &data[rank]), polyrailSuccess);
    ASSERT_EQ(polyrailGroupEnd(), polyrailSuccess);
  }
  EXPECT_EQ(data[0], 1) << "nothing begins before the outermost end";
  ASSERT_EQ(polyrailGroupEnd(), polyrailSuccess) << polyrailGetLastError(nullptr);
  for (float value : data) EXPECT_EQ(value, 7);
}

// Sends stand before receives on every rank, long ones that are done only when received.
TEST_F(GroupsOfTheCApi, TakeSendsAndReceivesInAnyOrder) {
  constexpr size_t kCount = 300000;
  std::vector<std::vector<float>> sent(kRanks), received(kRanks, std::vector<float>(kCount));
  polyrailStream_t streams[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    sent[rank].assign(kCount, static_cast<float>(rank));
    ASSERT_EQ(polyrailStreamCreate(&streams[rank]), polyrailSuccess);
  }
  for (const bool has_streams : {false, true}) {
    float data[kRanks] = {1, 2, 4};
    ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      const polyrailStream_t stream = has_streams ? streams[rank] : nullptr;
      ASSERT_EQ(polyrailSend(sent[rank].data(), kCount, polyrailFloat, (rank + 1) % kRanks,
                             comms_[rank], stream),
                polyrailSuccess);
      ASSERT_EQ(all_reduce(rank, &data[rank], stream), polyrailSuccess);
      ASSERT_EQ(polyrailRecv(received[rank].data(), kCount, polyrailFloat,
                             (rank + kRanks - 1) % kRanks, comms_[rank], stream),
                polyrailSuccess);
    }
    ASSERT_EQ(polyrailGroupEnd(), polyrailSuccess) << polyrailGetLastError(nullptr);
    for (int rank = 0; has_streams && rank < kRanks; ++rank) {
      ASSERT_EQ(polyrailStreamSynchronize(streams[rank]), polyrailSuccess);
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(data[rank], 7);
      EXPECT_EQ(received[rank], sent[(rank + kRanks - 1) % kRanks]);
      received[rank].assign(kCount, -1);
    }
  }
  for (polyrailStream_t stream : streams) EXPECT_EQ(polyrailStreamDestroy(stream), polyrailSuccess);
}

// A message that follows a collective of its stream carries what that has made.
TEST_F(GroupsOfTheCApi, SendWhatTheStreamHasMadeBefore) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      float value = static_cast<float>(rank + 1);
      float got = 0;
      polyrailStream_t stream = nullptr;
      ASSERT_EQ(polyrailStreamCreate(&stream), polyrailSuccess);
      ASSERT_EQ(all_reduce(rank, &value, stream), polyrailSuccess);
      if (rank == 0) {
        ASSERT_EQ(polyrailSendTagged(&value, 1, polyrailFloat, 1, 9, comms_[rank], stream),
                  polyrailSuccess);
      }
      if (rank == 1) {
        ASSERT_EQ(polyrailRecvTagged(&got, 1, polyrailFloat, 0, 9, comms_[rank], stream),
                  polyrailSuccess);
      }
      ASSERT_EQ(polyrailStreamSynchronize(stream), polyrailSuccess);
      if (rank == 1) {
        EXPECT_EQ(got, 6);
      }
      if (rank < 2) {  // the third takes no part
        float mine = static_cast<float>(10 * rank);
        ASSERT_EQ(polyrailPairwiseAverage(&mine, 1, polyrailFloat, 1 - rank, comms_[rank]),
                  polyrailSuccess);
        EXPECT_EQ(mine, 5);
      }
      EXPECT_EQ(polyrailStreamDestroy(stream), polyrailSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GroupsOfTheCApi, RefuseMessagesThatCannotBe) {
  float value = 0;
  EXPECT_EQ(polyrailSend(&value, 1, polyrailFloat, kRanks, comms_[0], nullptr),
            polyrailInvalidArgument);
  EXPECT_EQ(polyrailRecv(nullptr, 1, polyrailFloat, 1, comms_[0], nullptr),
            polyrailInvalidArgument);
  EXPECT_EQ(polyrailSend(&value, 1, static_cast<polyrailDataType_t>(99), 1, comms_[0], nullptr),
            polyrailInvalidArgument);
  EXPECT_EQ(polyrailSend(&value, 1, polyrailFloat, 1, nullptr, nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailPairwiseAverage(&value, 1, polyrailInt32, 1, comms_[0]),
            polyrailInvalidArgument);
  EXPECT_EQ(polyrailWindowCreate(nullptr, 1, 8, comms_[0]), polyrailInvalidArgument);
  EXPECT_EQ(polyrailWindowPut(nullptr, 0, 0, &value, 1), polyrailInvalidArgument);
  EXPECT_EQ(polyrailWindowDestroy(nullptr), polyrailInvalidArgument);
  ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
  EXPECT_EQ(polyrailSend(&value, 1, polyrailFloat, -1, comms_[0], nullptr),
            polyrailInvalidArgument);
  EXPECT_EQ(polyrailGroupEnd(), polyrailInvalidArgument);
}

TEST_F(GroupsOfTheCApi, WindowsAreWrittenByOthers) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      polyrailWindow_t window = nullptr;
      ASSERT_EQ(polyrailWindowCreate(&window, 2, 8, comms_[rank]), polyrailSuccess)
          << polyrailGetLastError(comms_[rank]);
      const double mine = rank + 1;
      ASSERT_EQ(polyrailWindowPut(window, (rank + 1) % kRanks, 1, &mine, 5), polyrailSuccess);
      double got = 0;
      uint64_t version = 0;
      while (version == 0) {
        ASSERT_EQ(polyrailWindowRead(window, 1, &got, &version), polyrailSuccess);
        std::this_thread::yield();
      }
      EXPECT_EQ(version, 5u);
      EXPECT_EQ(got, (rank + kRanks - 1) % kRanks + 1);
      ASSERT_EQ(polyrailBarrier(comms_[rank], nullptr), polyrailSuccess);
      EXPECT_EQ(polyrailWindowPut(window, 0, 7, &mine, 5), polyrailInvalidArgument);
      ASSERT_EQ(polyrailBarrier(comms_[rank], nullptr), polyrailSuccess);
      EXPECT_EQ(polyrailWindowDestroy(window), polyrailSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GroupsOfTheCApi, WithStreamsAndEvents) {
  float data[kRanks] = {1, 1, 1};
  polyrailStream_t streams[kRanks];
  for (polyrailStream_t& stream : streams) {
    ASSERT_EQ(polyrailStreamCreate(&stream), polyrailSuccess);
  }
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      ASSERT_EQ(all_reduce(rank, &data[rank], streams[rank]), polyrailSuccess);
    }
    ASSERT_EQ(polyrailGroupEnd(), polyrailSuccess) << polyrailGetLastError(nullptr);
  }
  polyrailEvent_t event = nullptr;
  ASSERT_EQ(polyrailEventCreate(&event), polyrailSuccess);
  EXPECT_EQ(polyrailEventQuery(event), polyrailSuccess) << "never recorded";
  EXPECT_EQ(polyrailEventRecord(event, streams[0]), polyrailSuccess);
  EXPECT_EQ(polyrailStreamWaitEvent(streams[1], event), polyrailSuccess);
  EXPECT_EQ(polyrailEventSynchronize(event), polyrailSuccess);
  EXPECT_EQ(polyrailEventQuery(event), polyrailSuccess);
  EXPECT_EQ(polyrailEventDestroy(event), polyrailSuccess);
  for (polyrailStream_t stream : streams) {
    EXPECT_EQ(polyrailStreamSynchronize(stream), polyrailSuccess);
    EXPECT_EQ(polyrailStreamQuery(stream), polyrailSuccess);
    EXPECT_EQ(polyrailStreamDestroy(stream), polyrailSuccess);
  }
  for (float value : data) EXPECT_EQ(value, 81);
}

TEST_F(GroupsOfTheCApi, ReportWhatWasRefused) {
  EXPECT_EQ(polyrailGroupEnd(), polyrailInvalidUsage);
  float data[kRanks] = {1, 2, 4};
  ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
  ASSERT_EQ(all_reduce(0, &data[0]), polyrailSuccess);
  EXPECT_EQ(all_reduce(1, nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailGroupEnd(), polyrailInvalidArgument);
  EXPECT_NE(std::string(polyrailGetLastError(nullptr)).find("null"), std::string::npos);
  ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
  EXPECT_EQ(polyrailAllReduce(data, data, 1, polyrailFloat, polyrailSum, nullptr, nullptr),
            polyrailInvalidArgument);
  EXPECT_EQ(polyrailGroupEnd(), polyrailInvalidArgument);
  EXPECT_EQ(polyrailGroupEnd(), polyrailInvalidUsage);
  // Nothing of it was started, so the ranks are still in step.
  ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(all_reduce(rank, &data[rank]), polyrailSuccess);
  }
  ASSERT_EQ(polyrailGroupEnd(), polyrailSuccess) << polyrailGetLastError(nullptr);
  for (float value : data) EXPECT_EQ(value, 7);
}

TEST_F(GroupsOfTheCApi, CopyCountsAndKeepOperators) {
  std::vector<std::size_t> counts = {2, 0, 1};
  float in[kRanks][2] = {{1, 2}, {3, 4}, {5, 6}};
  float gathered[kRanks][3] = {};
  float reduced[kRanks] = {};
  polyrailRedOp_t ops[kRanks];
  const auto add = [](const void* a, const void* b, void* out, size_t count, polyrailDataType_t,
                      void*) {
    for (size_t i = 0; i < count; ++i) {
      static_cast<float*>(out)[i] =
          static_cast<const float*>(a)[i] + static_cast<const float*>(b)[i];
    }
  };
  ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(polyrailAllGatherV(in[rank], gathered[rank], counts.data(), polyrailFloat,
                                 comms_[rank], nullptr),
              polyrailSuccess);
    EXPECT_EQ(polyrailRedOpCreateUser(&ops[rank], add, nullptr, 1, nullptr, comms_[rank]),
              polyrailSuccess);
    EXPECT_EQ(polyrailAllReduce(in[rank], &reduced[rank], 1, polyrailFloat, ops[rank], comms_[rank],
                                nullptr),
              polyrailSuccess);
    EXPECT_EQ(polyrailRedOpDestroy(ops[rank], comms_[rank]), polyrailSuccess);
  }
  counts.assign(3, 1000000);
  ASSERT_EQ(polyrailGroupEnd(), polyrailSuccess) << polyrailGetLastError(nullptr);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(gathered[rank][0], 1);
    EXPECT_EQ(gathered[rank][1], 2);
    EXPECT_EQ(gathered[rank][2], 5);
    EXPECT_EQ(reduced[rank], 9);
  }
}

TEST_F(GroupsOfTheCApi, SplitAllRanksFromOneThread) {
  polyrailComm_t parts[kRanks];
  polyrailComm_t copies[kRanks];
  ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(polyrailCommDup(comms_[rank], &copies[rank]), polyrailSuccess);
    ASSERT_EQ(polyrailCommSplit(comms_[rank], rank == 1 ? POLYRAIL_SPLIT_NOCOLOR : 5, -rank,
                                &parts[rank], nullptr),
              polyrailSuccess);
  }
  ASSERT_EQ(polyrailGroupEnd(), polyrailSuccess) << polyrailGetLastError(nullptr);
  EXPECT_EQ(parts[1], nullptr);
  int own = -1;
  EXPECT_EQ(polyrailCommUserRank(parts[2], &own), polyrailSuccess);
  EXPECT_EQ(own, 0) << "it has the smaller key";
  float data[2] = {1, 2};
  ASSERT_EQ(polyrailGroupStart(), polyrailSuccess);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(
        polyrailAllReduce(&data[i], &data[i], 1, polyrailFloat, polyrailSum, parts[2 * i], nullptr),
        polyrailSuccess);
  }
  ASSERT_EQ(polyrailGroupEnd(), polyrailSuccess) << polyrailGetLastError(nullptr);
  EXPECT_EQ(data[0], 3);
  EXPECT_EQ(data[1], 3);
  for (polyrailComm_t copy : copies) EXPECT_EQ(polyrailCommDestroy(copy), polyrailSuccess);
  EXPECT_EQ(polyrailCommDestroy(parts[0]), polyrailSuccess);
  EXPECT_EQ(polyrailCommDestroy(parts[2]), polyrailSuccess);
}

}  // namespace
}  // namespace polyrail
