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

using Communicators = std::vector<std::unique_ptr<Communicator>>;

// result[i][rank]: the communicators of `communicator_count` groups of `rank_count` ranks each.
inline std::vector<Communicators> make_communicators(int communicator_count, int rank_count,
                                                     const Options& options) {
  std::vector<Communicators> made(static_cast<std::size_t>(communicator_count));
  for (Communicators& ranks : made) {
    auto bootstraps = join_in_process(rank_count, options);
    EXPECT_TRUE(bootstraps.is_ok()) << bootstraps.status().message();
    ranks.resize(static_cast<std::size_t>(rank_count));
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      threads.emplace_back([&, rank] {
        auto created = Communicator::create(std::move(bootstraps.value()[rank]), options);
        EXPECT_TRUE(created.is_ok()) << created.status().message();
        if (created.is_ok()) ranks[rank] = std::move(created).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  return made;
}

// Ends them on one thread each, since the end of a rank waits for the others.
inline void end_together(std::vector<Communicators>& made) {
  std::vector<std::thread> threads;
  for (Communicators& ranks : made) {
    for (auto& communicator : ranks) threads.emplace_back([&] { communicator.reset(); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Runs body(rank, its communicators) on one thread per rank.
inline void run_ranks_with(int communicator_count, int rank_count, const Options& options,
                           const std::function<void(int, Communicators&)>& body) {
  std::vector<Communicators> made = make_communicators(communicator_count, rank_count, options);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < rank_count; ++rank) {
    Communicators own;
    for (Communicators& ranks : made) {
      ASSERT_NE(ranks[static_cast<std::size_t>(rank)], nullptr);
      own.push_back(std::move(ranks[static_cast<std::size_t>(rank)]));
    }
    threads.emplace_back(
        [&body, rank, communicators = std::move(own)]() mutable { body(rank, communicators); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace polyrail
