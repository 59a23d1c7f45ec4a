// Ranks as threads, for tests of whole communicators.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <polyrail/polyrail.hpp>

namespace polyrail {

inline Options quick_options(const std::string& transports) {
  Options options;
  options.transports = transports;
  options.calibration_ms = 10;
  options.operation_timeout_ms = 60000;
  options.log_level = "off";
  if (transports == "tcp") options.interfaces = "lo";
  return options;
}

// Runs body(rank, communicator) on one thread per rank; all see the same options.
inline void run_ranks(int rank_count, const Options& options,
                      const std::function<void(int, Communicator&)>& body) {
  Result<std::vector<std::unique_ptr<Bootstrap>>> bootstraps = join_in_process(rank_count, options);
  ASSERT_TRUE(bootstraps.is_ok()) << bootstraps.status().message();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < rank_count; ++rank) {
    threads.emplace_back([&, rank, bootstrap = std::move(bootstraps.value()[rank])]() mutable {
      Result<std::unique_ptr<Communicator>> communicator =
          Communicator::create(std::move(bootstrap), options);
      ASSERT_TRUE(communicator.is_ok()) << communicator.status().message();
      body(rank, *communicator.value());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace polyrail
