// The C API: the same calls as NCCL's, with errors that say what was wrong.
#include <gtest/gtest.h>
#include <polyrail/polyrail.h>

#include <cstring>
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
