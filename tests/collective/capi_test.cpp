// The C API: the same calls as NCCL's, with errors that say what was wrong.
#include <gtest/gtest.h>
#include <polyrail/polyrail.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace {

polyrailConfig_t quick_config() {
  polyrailConfig_t config = POLYRAIL_CONFIG_INITIALIZER;
  config.options = "calibration_ms=10\nstart_timeout_ms=10000\nlog_level=off";
  return config;
}

TEST(CApi, ReducesBlockingAndOnAStream) {
  polyrailUniqueId id;
  ASSERT_EQ(polyrailGetUniqueId(&id), polyrailSuccess) << polyrailGetLastError(nullptr);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      const polyrailConfig_t config = quick_config();
      polyrailComm_t comm = nullptr;
      ASSERT_EQ(polyrailCommInitRankConfig(&comm, 2, id, rank, &config), polyrailSuccess)
          << polyrailGetLastError(nullptr);
      int count = 0;
      int own = -1;
      EXPECT_EQ(polyrailCommCount(comm, &count), polyrailSuccess);
      EXPECT_EQ(polyrailCommUserRank(comm, &own), polyrailSuccess);
      EXPECT_EQ(count, 2);
      EXPECT_EQ(own, rank);

      std::vector<float> in(1000, static_cast<float>(rank + 1));
      std::vector<float> out(1000);
      EXPECT_EQ(
          polyrailAllReduce(in.data(), out.data(), 1000, polyrailFloat, polyrailSum, comm, nullptr),
          polyrailSuccess);
      EXPECT_EQ(out[999], 3.0f);

      polyrailStream_t stream = nullptr;
      ASSERT_EQ(polyrailStreamCreate(&stream), polyrailSuccess);
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(polyrailAllReduce(out.data(), out.data(), 1000, polyrailFloat, polyrailMax, comm,
                                    stream),
                  polyrailSuccess);
      }
      EXPECT_EQ(polyrailStreamSynchronize(stream), polyrailSuccess);
      EXPECT_EQ(polyrailStreamQuery(stream), polyrailSuccess);
      EXPECT_EQ(polyrailStreamDestroy(stream), polyrailSuccess);
      EXPECT_EQ(out[0], 3.0f);

      EXPECT_EQ(
          polyrailAllReduce(nullptr, out.data(), 1, polyrailFloat, polyrailSum, comm, nullptr),
          polyrailInvalidArgument);
      EXPECT_NE(std::string(polyrailGetLastError(comm)).find("input is null"), std::string::npos);
      polyrailResult_t error = polyrailInternalError;
      EXPECT_EQ(polyrailCommGetAsyncError(comm, &error), polyrailSuccess);
      EXPECT_EQ(error, polyrailSuccess);
      EXPECT_EQ(polyrailCommFinalize(comm), polyrailSuccess);
      EXPECT_EQ(polyrailCommDestroy(comm), polyrailSuccess);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

// Runs body(rank, comm) on one thread per rank.
void run_comms(int rank_count, const std::function<void(int, polyrailComm_t)>& body) {
  polyrailUniqueId id;
  ASSERT_EQ(polyrailGetUniqueId(&id), polyrailSuccess) << polyrailGetLastError(nullptr);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < rank_count; ++rank) {
    ranks.emplace_back([&, rank] {
      const polyrailConfig_t config = quick_config();
      polyrailComm_t comm = nullptr;
      ASSERT_EQ(polyrailCommInitRankConfig(&comm, rank_count, id, rank, &config), polyrailSuccess)
          << polyrailGetLastError(nullptr);
      body(rank, comm);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

polyrailResult_t all_reduce(polyrailComm_t comm, int type, int op) {
  double data[2] = {1, 2};
  return polyrailAllReduce(data, data, 1, static_cast<polyrailDataType_t>(type),
                           static_cast<polyrailRedOp_t>(op), comm, nullptr);
}

TEST(CApiOperators, HaveNumbersThatAreChecked) {
  run_comms(1, [](int, polyrailComm_t comm) {
    for (int op : {13, 14, 15, 16, 255, 256, 999, 1000, 0x7fffffff}) {
      EXPECT_EQ(all_reduce(comm, polyrailFloat, op), polyrailInvalidArgument) << op;
      EXPECT_EQ(polyrailRedOpDestroy(static_cast<polyrailRedOp_t>(op), comm),
                polyrailInvalidArgument)
          << op;
    }
    for (int type : {12, 31, 38, 39, 44, 255, 256, 263, 0x7fffffff}) {
      EXPECT_EQ(all_reduce(comm, type, polyrailSum), polyrailInvalidArgument) << type;
    }
    EXPECT_EQ(polyrailRedOpDestroy(polyrailSum, comm), polyrailInvalidArgument);

    float factor = 2;
    polyrailRedOp_t op = polyrailSum;
    polyrailRedOp_t second = polyrailSum;
    EXPECT_EQ(polyrailRedOpCreatePreMulSum(&op, &factor, polyrailFloat, polyrailScalarHostImmediate,
                                           comm),
              polyrailSuccess);
    EXPECT_EQ(polyrailRedOpCreateWeightedAvg(&second, 0.5, comm), polyrailSuccess);
    EXPECT_GE(static_cast<int>(op), 1000);
    EXPECT_GT(second, op);
    EXPECT_EQ(all_reduce(comm, polyrailDouble, op), polyrailInvalidArgument);
    EXPECT_NE(std::strstr(polyrailGetLastError(comm), "made for float"), nullptr)
        << polyrailGetLastError(comm);
    EXPECT_EQ(polyrailRedOpDestroy(op, comm), polyrailSuccess);
    EXPECT_EQ(polyrailRedOpDestroy(op, comm), polyrailInvalidArgument);
    EXPECT_EQ(all_reduce(comm, polyrailFloat, op), polyrailInvalidArgument);
    EXPECT_EQ(polyrailRedOpCreateWeightedAvg(&op, 1, comm), polyrailSuccess);
    EXPECT_GT(op, second) << "numbers are not given twice";

    // Another communicator does not know it.
    polyrailComm_t other = nullptr;
    ASSERT_EQ(polyrailCommDup(comm, &other), polyrailSuccess);
    EXPECT_EQ(all_reduce(other, polyrailFloat, op), polyrailInvalidArgument);
    EXPECT_EQ(polyrailCommDestroy(other), polyrailSuccess);
    EXPECT_EQ(polyrailCommDestroy(comm), polyrailSuccess);
  });
}

TEST(CApiOperators, RefuseWhatTheyCannotBeMadeOf) {
  run_comms(1, [](int, polyrailComm_t comm) {
    float factor = 2;
    polyrailRedOp_t op = polyrailSum;
    const auto pre_mul_sum = [&](polyrailRedOp_t* out, void* scalar, int type, int residence) {
      return polyrailRedOpCreatePreMulSum(out, scalar, static_cast<polyrailDataType_t>(type),
                                          static_cast<polyrailScalarResidence_t>(residence), comm);
    };
    EXPECT_EQ(pre_mul_sum(nullptr, &factor, polyrailFloat, 1), polyrailInvalidArgument);
    EXPECT_EQ(pre_mul_sum(&op, nullptr, polyrailFloat, 1), polyrailInvalidArgument);
    EXPECT_EQ(pre_mul_sum(&op, &factor, 77, 1), polyrailInvalidArgument);
    EXPECT_EQ(pre_mul_sum(&op, &factor, polyrailComplex64, 1), polyrailInvalidArgument);
    EXPECT_EQ(pre_mul_sum(&op, &factor, polyrailFloat, polyrailScalarDevice),
              polyrailInvalidArgument);
    std::int64_t beyond = (std::int64_t{1} << 53) + 2;
    EXPECT_EQ(pre_mul_sum(&op, &beyond, polyrailInt64, 1), polyrailInvalidArgument);
    EXPECT_EQ(polyrailRedOpCreatePreMulSum(&op, &factor, polyrailFloat, polyrailScalarHostImmediate,
                                           nullptr),
              polyrailInvalidArgument);
    EXPECT_EQ(polyrailRedOpCreateWeightedAvg(nullptr, 1, comm), polyrailInvalidArgument);
    EXPECT_EQ(polyrailRedOpCreateUser(&op, nullptr, nullptr, 1, nullptr, comm),
              polyrailInvalidArgument);
    EXPECT_EQ(op, polyrailSum) << "results are set after success only";
    EXPECT_EQ(polyrailCommDestroy(comm), polyrailSuccess);
  });
}

TEST(CApi, RefusesCallsWithoutTheirCounts) {
  run_comms(1, [](int, polyrailComm_t comm) {
    float a[4] = {};
    float b[4] = {};
    const size_t counts[1] = {1};
    const polyrailDataType_t type = polyrailFloat;
    EXPECT_EQ(polyrailAllGatherV(a, b, nullptr, type, comm, nullptr), polyrailInvalidArgument);
    EXPECT_EQ(polyrailReduceScatterV(a, b, nullptr, type, polyrailSum, comm, nullptr),
              polyrailInvalidArgument);
    EXPECT_EQ(polyrailAllToAllV(a, nullptr, b, counts, type, comm, nullptr),
              polyrailInvalidArgument);
    EXPECT_EQ(polyrailAllToAllV(a, counts, b, nullptr, type, comm, nullptr),
              polyrailInvalidArgument);
    EXPECT_EQ(polyrailGatherV(a, 1, b, nullptr, type, 0, comm, nullptr), polyrailInvalidArgument);
    EXPECT_EQ(polyrailScatterV(a, nullptr, b, 1, type, 0, comm, nullptr), polyrailInvalidArgument);
    EXPECT_NE(std::strstr(polyrailGetLastError(comm), "sendcounts is null"), nullptr);
    EXPECT_EQ(polyrailAllReduceWire(a, b, 1, type, static_cast<polyrailDataType_t>(99), polyrailSum,
                                    comm, nullptr),
              polyrailInvalidArgument);
    EXPECT_EQ(polyrailBarrier(nullptr, nullptr), polyrailInvalidArgument);
    EXPECT_EQ(polyrailBroadcast(a, b, 1, static_cast<polyrailDataType_t>(99), 0, comm, nullptr),
              polyrailInvalidArgument);
    polyrailResult_t error = polyrailInternalError;
    EXPECT_EQ(polyrailCommGetAsyncError(comm, &error), polyrailSuccess);
    EXPECT_EQ(error, polyrailSuccess) << "a refused call must not break anything";
    EXPECT_EQ(polyrailCommDestroy(comm), polyrailSuccess);
  });
}

TEST(CApi, RefusesNullStreamsAndEvents) {
  polyrailStream_t stream = nullptr;
  polyrailEvent_t event = nullptr;
  EXPECT_EQ(polyrailStreamCreate(nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailEventCreate(nullptr), polyrailInvalidArgument);
  ASSERT_EQ(polyrailStreamCreate(&stream), polyrailSuccess);
  ASSERT_EQ(polyrailEventCreate(&event), polyrailSuccess);
  EXPECT_EQ(polyrailEventRecord(nullptr, stream), polyrailInvalidArgument);
  EXPECT_EQ(polyrailEventRecord(event, nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailStreamWaitEvent(stream, nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailStreamWaitEvent(nullptr, event), polyrailInvalidArgument);
  for (auto* call : {polyrailStreamSynchronize, polyrailStreamQuery, polyrailStreamDestroy}) {
    EXPECT_EQ(call(nullptr), polyrailInvalidArgument);
    EXPECT_EQ(call(stream), polyrailSuccess);
  }
  for (auto* call : {polyrailEventSynchronize, polyrailEventQuery, polyrailEventDestroy}) {
    EXPECT_EQ(call(nullptr), polyrailInvalidArgument);
    EXPECT_EQ(call(event), polyrailSuccess);
  }
}

TEST(CApi, AbortsWhileAnotherThreadWaitsForAStream) {
  std::promise<void> is_aborted;
  run_comms(2, [&](int rank, polyrailComm_t comm) {
    float value = 1;
    if (rank == 1) {
      is_aborted.get_future().wait();
      polyrailResult_t error = polyrailSuccess;
      EXPECT_EQ(polyrailAllReduce(&value, &value, 1, polyrailFloat, polyrailSum, comm, nullptr),
                polyrailRemoteError);
      EXPECT_EQ(polyrailCommGetAsyncError(comm, &error), polyrailSuccess);
      EXPECT_EQ(error, polyrailRemoteError);
      EXPECT_EQ(polyrailCommDestroy(comm), polyrailSuccess);
      return;
    }
    polyrailStream_t stream = nullptr;
    ASSERT_EQ(polyrailStreamCreate(&stream), polyrailSuccess);
    EXPECT_EQ(polyrailAllReduce(&value, &value, 1, polyrailFloat, polyrailSum, comm, stream),
              polyrailSuccess);
    EXPECT_EQ(polyrailStreamQuery(stream), polyrailInProgress);
    std::thread other([&] {
      EXPECT_EQ(polyrailStreamSynchronize(stream), polyrailAborted);
      is_aborted.set_value();
    });
    EXPECT_EQ(polyrailCommAbort(comm), polyrailSuccess);
    other.join();
    EXPECT_EQ(polyrailStreamQuery(stream), polyrailAborted);
    EXPECT_EQ(polyrailStreamDestroy(stream), polyrailAborted);
  });
}

TEST(CApi, RunsEveryCollective) {
  constexpr int kRanks = 3;
  run_comms(kRanks, [](int rank, polyrailComm_t comm) {
    using Values = std::vector<float>;
    const auto own = static_cast<float>(1 << rank);  // 1, 2, 4
    const Values in(6, own);
    const auto check = [&](polyrailResult_t result, const Values& out, const Values& expected) {
      EXPECT_EQ(result, polyrailSuccess) << polyrailGetLastError(comm);
      EXPECT_EQ(out, expected);
    };
    const polyrailDataType_t type = polyrailFloat;
    const size_t counts[kRanks] = {1, 0, 2};
    const size_t own_count = counts[rank];
    Values out(2, -1);
    check(polyrailReduce(in.data(), out.data(), 2, type, polyrailSum, 1, comm, nullptr), out,
          rank == 1 ? Values{7, 7} : Values{-1, -1});
    out.assign(2, -1);
    check(polyrailBroadcast(in.data(), out.data(), 2, type, 2, comm, nullptr), out, {4, 4});
    out = {own, own};
    check(polyrailBcast(out.data(), 2, type, 1, comm, nullptr), out, {2, 2});
    out.assign(2, -1);
    check(polyrailReduceScatter(in.data(), out.data(), 2, type, polyrailMax, comm, nullptr), out,
          {4, 4});
    out.assign(3, -1);
    check(polyrailAllGather(in.data(), out.data(), 1, type, comm, nullptr), out, {1, 2, 4});
    check(polyrailAllGatherV(in.data(), out.data(), counts, type, comm, nullptr), out, {1, 4, 4});
    out.assign(3, -1);
    check(polyrailAlltoAll(in.data(), out.data(), 1, type, comm, nullptr), out, {1, 2, 4});
    out.assign(2, -1);
    check(polyrailReduceScatterV(in.data(), out.data(), counts, type, polyrailSum, comm, nullptr),
          out,
          rank == 0   ? Values{7, -1}
          : rank == 1 ? Values{-1, -1}
                      : Values{7, 7});
    // Rank r sends counts[s] elements to rank s, so it receives counts[r] from each.
    const size_t receive_counts[kRanks] = {own_count, own_count, own_count};
    out.assign(6, -1);
    Values expected(6, -1);
    for (std::size_t i = 0; i < 3 * own_count; ++i) {
      expected[i] = static_cast<float>(1 << (i / own_count));
    }
    check(polyrailAllToAllV(in.data(), counts, out.data(), receive_counts, type, comm, nullptr),
          out, expected);
    out.assign(3, -1);
    check(polyrailGather(in.data(), out.data(), 1, type, 0, comm, nullptr), out,
          rank == 0 ? Values{1, 2, 4} : Values{-1, -1, -1});
    out.assign(3, -1);
    check(polyrailGatherV(in.data(), own_count, out.data(), rank == 0 ? counts : nullptr, type, 0,
                          comm, nullptr),
          out, rank == 0 ? Values{1, 4, 4} : Values{-1, -1, -1});
    out.assign(2, -1);
    check(polyrailScatter(in.data(), out.data(), 2, type, 2, comm, nullptr), out, {4, 4});
    out.assign(2, -1);
    check(polyrailScatterV(in.data(), rank == 2 ? counts : nullptr, out.data(), own_count, type, 2,
                           comm, nullptr),
          out,
          rank == 0   ? Values{4, -1}
          : rank == 1 ? Values{-1, -1}
                      : Values{4, 4});
    out.assign(1, -1);
    check(polyrailScan(in.data(), out.data(), 1, type, polyrailSum, comm, nullptr), out,
          {static_cast<float>((2 << rank) - 1)});
    out.assign(1, -1);
    check(polyrailExclusiveScan(in.data(), out.data(), 1, type, polyrailSum, comm, nullptr), out,
          {rank == 0 ? -1 : static_cast<float>((1 << rank) - 1)});
    EXPECT_EQ(polyrailBarrier(comm, nullptr), polyrailSuccess);
    check(polyrailAllReduceWire(in.data(), out.data(), 1, type, polyrailBfloat16, polyrailSum, comm,
                                nullptr),
          out, {7});

    float factor = own;
    polyrailRedOp_t op = polyrailSum;
    EXPECT_EQ(polyrailRedOpCreatePreMulSum(&op, &factor, type, polyrailScalarHostImmediate, comm),
              polyrailSuccess);
    check(polyrailAllReduce(in.data(), out.data(), 1, type, op, comm, nullptr), out, {1 + 4 + 16});
    EXPECT_EQ(polyrailRedOpDestroy(op, comm), polyrailSuccess);
    // Of 1, 2 and 4 with the weights 1, 2 and 1: 9 / 4.
    EXPECT_EQ(polyrailRedOpCreateWeightedAvg(&op, rank == 1 ? 2 : 1, comm), polyrailSuccess);
    check(polyrailAllReduce(in.data(), out.data(), 1, type, op, comm, nullptr), out, {2.25F});
    EXPECT_EQ(polyrailRedOpDestroy(op, comm), polyrailSuccess);
    // The first in rank order.
    const auto first = [](const void* a, const void*, void* result, size_t count,
                          polyrailDataType_t, void* context) {
      std::memmove(result, a, count * sizeof(float));
      ++*static_cast<std::atomic<int>*>(context);
    };
    std::atomic<int> use_count{0};
    EXPECT_EQ(polyrailRedOpCreateUser(&op, first, &use_count, 0, nullptr, comm), polyrailSuccess);
    check(polyrailAllReduce(in.data(), out.data(), 1, type, op, comm, nullptr), out, {1});
    EXPECT_EQ(polyrailRedOpDestroy(op, comm), polyrailSuccess);
    EXPECT_EQ(polyrailBarrier(comm, nullptr), polyrailSuccess);
    EXPECT_EQ(polyrailCommDestroy(comm), polyrailSuccess);
  });
}

TEST(CApi, RefusesNullAndNonsense) {
  EXPECT_EQ(polyrailGetUniqueId(nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailGetVersion(nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailCommDestroy(nullptr), polyrailInvalidArgument);
  EXPECT_EQ(polyrailAllReduce(nullptr, nullptr, 0, polyrailFloat, polyrailSum, nullptr, nullptr),
            polyrailInvalidArgument);
  EXPECT_EQ(polyrailMemAlloc(nullptr, 1), polyrailInvalidArgument);
  int on_stack = 0;
  EXPECT_NE(polyrailMemFree(&on_stack), polyrailSuccess);

  polyrailUniqueId garbage;
  std::memset(&garbage, 0x5a, sizeof garbage);
  polyrailComm_t comm = nullptr;
  EXPECT_NE(polyrailCommInitRank(&comm, 2, garbage, 0), polyrailSuccess);
  EXPECT_EQ(comm, nullptr);
  EXPECT_NE(std::strlen(polyrailGetLastError(nullptr)), 0u);
  EXPECT_EQ(polyrailCommInitRank(&comm, 0, garbage, 0), polyrailInvalidArgument);
  EXPECT_EQ(polyrailCommInitRank(&comm, 2, garbage, 2), polyrailInvalidArgument);
  EXPECT_EQ(polyrailUniqueIdFromText("polyrail1:xyz", &garbage), polyrailInvalidArgument);

  polyrailConfig_t config = quick_config();
  config.options = "no_such_option=1";
  EXPECT_EQ(polyrailCommInitRankConfig(&comm, 1, garbage, 0, &config), polyrailInvalidArgument);
  EXPECT_NE(std::string(polyrailGetLastError(nullptr)).find("no_such_option"), std::string::npos);
  config.magic = 0;
  EXPECT_EQ(polyrailCommInitRankConfig(&comm, 1, garbage, 0, &config), polyrailInvalidArgument);
}

TEST(CApi, TextOfAnIdComesBack) {
  polyrailUniqueId id;
  ASSERT_EQ(polyrailGetUniqueId(&id), polyrailSuccess);
  char text[POLYRAIL_UNIQUE_ID_TEXT_BYTES];
  ASSERT_EQ(polyrailUniqueIdToText(&id, text, sizeof text), polyrailSuccess);
  polyrailUniqueId again;
  ASSERT_EQ(polyrailUniqueIdFromText(text, &again), polyrailSuccess);
  EXPECT_EQ(std::memcmp(&id, &again, sizeof id), 0);
  EXPECT_EQ(polyrailUniqueIdToText(&id, text, 10), polyrailInvalidArgument);
}

TEST(CApi, SharedMemoryIsZeroAndAligned) {
  void* memory = nullptr;
  ASSERT_EQ(polyrailMemAlloc(&memory, 100000), polyrailSuccess);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
  EXPECT_EQ(static_cast<char*>(memory)[99999], 0);
  EXPECT_EQ(polyrailMemFree(memory), polyrailSuccess);
}

}  // namespace
