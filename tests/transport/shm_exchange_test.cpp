// The small exchange of the shm transport.
#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <thread>

#include "tests/transport/shm_support.hpp"

namespace polyrail::testing {
namespace {

using Kind = RecordingSink::Kind;

// What a rank posts in an exchange: some 8-byte words, their number known to all.
std::uint64_t word_of(int rank, std::uint64_t round, std::size_t i) {
  return round * 1000 + static_cast<std::uint64_t>(rank) * 100 + i;
}
std::size_t word_count(std::uint64_t round, std::size_t most_bytes) {
  return round * 7 % (most_bytes / 8 + 1);
}

constexpr bool kAll[] = {true, true, true, true, true, true, true, true};
std::span<const bool> all_of(const HarnessRank& own) {
  return {kAll, own.endpoints.size()};
}

// Takes part in so many exchanges and checks what all others post.
void exchange(HarnessRank& own, int rank, std::uint64_t round_count, bool is_sleeping) {
  SmallExchange& small = *own.transport->small_exchange();
  std::vector<std::uint64_t> words;
  for (std::uint64_t round = 0; round < round_count; ++round) {
    words.resize(word_count(round, small.most_bytes()));
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = word_of(rank, round, i);
    ASSERT_TRUE(small.can_post());
    small.post(std::as_bytes(std::span(words)), all_of(own));
    for (int peer = 0; peer < static_cast<int>(own.endpoints.size()); ++peer) {
      if (peer == rank) continue;
      const std::byte* bytes = nullptr;
      const auto is_there = [&] { return (bytes = small.poll(peer)) != nullptr; };
      if (is_sleeping) {
        own.run_asleep(is_there);
      } else {
        while (!is_there()) std::this_thread::yield();
      }
      for (std::size_t i = 0; i < words.size(); ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes + 8 * i, 8);
        ASSERT_EQ(word, word_of(peer, round, i)) << "round " << round << " peer " << peer;
      }
    }
    small.finish();
  }
}

void exchange_between_threads(int rank_count, std::uint64_t round_count, bool is_sleeping) {
  RankHarness ranks(open_builtin("shm"), rank_count);
  ranks.connect_until_up();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < rank_count; ++rank) {
    threads.emplace_back([&, rank] { exchange(ranks[rank], rank, round_count, is_sleeping); });
  }
  for (auto& thread : threads) thread.join();
}

TEST(ShmSmallExchange, HandsEverybodyWhatEachHasPosted) {
  for (const int rank_count : {2, 3, 5}) exchange_between_threads(rank_count, 300, false);
}

TEST(ShmSmallExchange, WakesSleepers) {
  for (const int rank_count : {2, 4}) exchange_between_threads(rank_count, 1000, true);
}

TEST(ShmSmallExchange, WorksBetweenProcesses) {
  constexpr std::uint64_t kRounds = 2000;
  const auto other = OtherProcess::fork([](const Wire& wire) {
    const auto own = join_over(wire, 1);
    exchange(*own, 1, kRounds, true);
    wire.send("done");
    wire.receive();
  });
  const auto own = join_over(other->wire(), 0);
  exchange(*own, 0, kRounds, true);
  EXPECT_EQ(other->wire().receive(), "done");
}

TEST(ShmSmallExchange, TellsOfAPeerThatWillNotPost) {
  RankHarness ranks(open_builtin("shm"), 2);
  ranks.connect_until_up();
  SmallExchange& small = *ranks[0].transport->small_exchange();
  small.post({}, all_of(ranks[0]));
  EXPECT_EQ(small.poll(1), nullptr);
  ranks[1].transport.reset();
  ranks[0].run_asleep([&] { return ranks[0].sink.count(Kind::kDown) == 1; });
  EXPECT_EQ(small.poll(1), nullptr);
}

// Who needs nothing of the others may be one exchange ahead, and no more.
TEST(ShmSmallExchange, LetsARankThatOnlyGivesGoAhead) {
  RankHarness ranks(open_builtin("shm"), 2);
  ranks.connect_until_up();
  SmallExchange& giver = *ranks[0].transport->small_exchange();
  SmallExchange& taker = *ranks[1].transport->small_exchange();
  constexpr bool kNobody[] = {false, false};
  const std::uint64_t words[] = {5, 6, 7};
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(giver.can_post());
    giver.post(std::as_bytes(std::span(&words[round], 1)), kNobody);
    giver.finish();
    EXPECT_FALSE(giver.can_post());
    std::thread late([&] {
      ASSERT_TRUE(taker.can_post());
      taker.post({}, all_of(ranks[1]));
      std::uint64_t got = 0;
      ASSERT_NE(taker.poll(0), nullptr);
      std::memcpy(&got, taker.poll(0), sizeof got);
      EXPECT_EQ(got, words[round]);
      taker.finish();
    });
    ranks[0].run_asleep([&] { return giver.can_post(); });
    late.join();
  }
}

TEST(ShmSmallExchange, DoesNotDisturbSlices) {
  RankHarness ranks(open_builtin("shm"), 2);
  ranks.connect_until_up();
  const auto play = [&](int rank) {
    auto& own = ranks[rank];
    const std::byte byte{1};
    for (std::uint64_t round = 0; round < 500; ++round) {
      SliceHeader header;
      header.bytes = 1;
      while (own.endpoints[1 - rank]->put(header, &byte, round) == Posted::kBusy) own.progress();
      exchange(own, rank, 1, true);
    }
    own.run_asleep([&] {
      return own.sink.count(Kind::kArrived) == 500 && own.sink.count(Kind::kAcknowledged) == 500;
    });
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
}

}  // namespace
}  // namespace polyrail::testing
