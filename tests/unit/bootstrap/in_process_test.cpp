// join_in_process: ranks as threads.
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <polyrail/bootstrap.hpp>

namespace polyrail {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Ranks = std::vector<std::unique_ptr<Bootstrap>>;
using Gathered = Result<std::vector<std::string>>;

Ranks join_all(int rank_count, std::int64_t timeout_ms = 30000) {
  Options options;
  options.start_timeout_ms = timeout_ms;
  auto ranks = join_in_process(rank_count, options);
  EXPECT_TRUE(ranks.is_ok()) << ranks.status().message();
  return std::move(ranks).value();
}

// Runs `body` for each rank on a thread of its own.
void on_threads(Ranks& ranks, const std::function<void(Bootstrap&)>& body) {
  std::vector<std::thread> threads;
  for (auto& rank : ranks) threads.emplace_back([&body, &rank] { body(*rank); });
  for (std::thread& thread : threads) thread.join();
}

TEST(JoinInProcess, NumbersTheRanksAndSharesOneKey) {
  const Ranks ranks = join_all(3);
  ASSERT_EQ(ranks.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks[rank]->rank(), rank);
    EXPECT_EQ(ranks[rank]->rank_count(), 3);
    EXPECT_EQ(ranks[rank]->key(), ranks[0]->key());
  }
  EXPECT_NE(ranks[0]->key(), join_all(3)[0]->key());
}

TEST(JoinInProcess, GathersManyRoundsByRank) {
  for (int rank_count : {1, 2, 3, 9, 64}) {
    Ranks ranks = join_all(rank_count);
    on_threads(ranks, [](Bootstrap& bootstrap) {
      for (int round = 0; round < 20; ++round) {
        // Rank r's message has r letters, so rank 0's is empty.
        const std::string message(bootstrap.rank(), static_cast<char>('a' + round));
        const Gathered all = bootstrap.all_gather("round " + std::to_string(round), message);
        ASSERT_TRUE(all.is_ok()) << all.status().message();
        ASSERT_EQ(all.value().size(), static_cast<std::size_t>(bootstrap.rank_count()));
        for (int rank = 0; rank < bootstrap.rank_count(); ++rank) {
          EXPECT_EQ(all.value()[rank], std::string(rank, static_cast<char>('a' + round)));
        }
      }
    });
  }
}

TEST(JoinInProcess, NamesTheMissingRanksAtTheDeadline) {
  Ranks ranks = join_all(4, 1000);
  Ranks present;
  for (int rank : {0, 2}) present.push_back(std::move(ranks[rank]));
  on_threads(present, [](Bootstrap& bootstrap) {
    const Status status = bootstrap.all_gather("rails", "x").status();
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("phase 'rails'"), HasSubstr("ranks 1 and 3 "),
                                        HasSubstr("1000 ms")));
  });
  // The group stays failed, also for those who come late.
  EXPECT_EQ(ranks[1]->all_gather("rails", "x").status().code(), StatusCode::kTimeout);
}

TEST(JoinInProcess, TellsTheOthersWhenARankEndsEarly) {
  for (const bool is_waiting : {true, false}) {
    Ranks ranks = join_all(3);
    if (!is_waiting) ranks[1].reset();
    std::thread leaver([&] {
      if (is_waiting) ranks[1].reset();
    });
    std::vector<std::thread> threads;
    for (int rank : {0, 2}) {
      threads.emplace_back([&ranks, rank] {
        const Status status = ranks[rank]->all_gather("rails", "x").status();
        EXPECT_EQ(status.code(), StatusCode::kRemoteError);
        EXPECT_THAT(status.message(), AllOf(HasSubstr("'rails'"), HasSubstr("rank 1 has ended")));
      });
    }
    for (std::thread& thread : threads) thread.join();
    leaver.join();
  }
}

TEST(JoinInProcess, LetsARankEndAfterItsLastRound) {
  Ranks ranks = join_all(4);
  std::vector<std::thread> threads;
  for (auto& rank : ranks) {
    threads.emplace_back([&rank] {
      EXPECT_TRUE(rank->all_gather("last", "x").is_ok());
      rank.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(JoinInProcess, RefusesRanksInDifferentPhases) {
  Ranks ranks = join_all(2);
  on_threads(ranks, [](Bootstrap& bootstrap) {
    const char* phase = bootstrap.rank() == 0 ? "rails" : "calibration";
    const Status status = bootstrap.all_gather(phase, "x").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidUsage);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("'rails'"), HasSubstr("'calibration'"),
                                        HasSubstr("rank 0"), HasSubstr("rank 1")));
  });
}

TEST(JoinInProcess, TellsEverybodyWhenOneMessageIsTooLong) {
  Ranks ranks = join_all(3);
  on_threads(ranks, [](Bootstrap& bootstrap) {
    const std::string message((std::size_t{16} << 20) + (bootstrap.rank() == 1), 'x');
    const Status status = bootstrap.all_gather("rails", message).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 1"), HasSubstr("16777217")));
  });
}

TEST(JoinInProcess, RefusesImpossibleCounts) {
  for (int rank_count : {0, -1, 1 << 20}) {
    const auto ranks = join_in_process(rank_count, Options());
    EXPECT_EQ(ranks.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(ranks.status().message(), HasSubstr(std::to_string(rank_count)));
  }
}

}  // namespace
}  // namespace polyrail
