// Start-up over rails that are slower on one end.
#include <gtest/gtest.h>

#include <thread>

#include "tests/collective/ranks.hpp"

namespace polyrail {
namespace {

// The last bytes of a measurement may need their sender's progress after it has all it waits for.
TEST(StartUp, LeavesNothingBehindOnARailThatDelays) {
  auto bootstraps = join_in_process(2, quick_options("loopback"));
  ASSERT_TRUE(bootstraps.is_ok());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([rank, bootstrap = std::move(bootstraps.value()[rank])]() mutable {
      Options options = quick_options("loopback");
      options.start_timeout_ms = 5000;
      if (rank == 1) options.fault = "loopback:delay=20ms";
      const auto communicator = Communicator::create(std::move(bootstrap), options);
      ASSERT_TRUE(communicator.is_ok()) << communicator.status().message();
      float value = 1;
      EXPECT_TRUE(communicator.value()->all_reduce(std::span(&value, 1), ReduceOp::kSum).is_ok());
      EXPECT_EQ(value, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace polyrail
