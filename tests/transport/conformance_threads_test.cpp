// Conformance: a thread per rank that sleeps on the descriptor. A lost wake-up hangs the test.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/transport/conformance.hpp"

namespace polyrail::testing {
namespace {

using Kind = RecordingSink::Kind;

// Runs each rank on a thread of its own, asleep whenever there is nothing to do. A rank that is
// done still makes progress for the others.
void run_threads(RankHarness& ranks, const std::function<bool(int rank)>& is_done) {
  std::atomic<int> unfinished_count = ranks.rank_count();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks.rank_count(); ++rank) {
    threads.emplace_back([&, rank] {
      ranks[rank].run_asleep([&] { return is_done(rank); });
      --unfinished_count;
      while (unfinished_count > 0) {
        if (!ranks[rank].progress()) std::this_thread::yield();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(TransportConformance, ConnectsAsleep) {
  RankHarness ranks(open(), 4);
  ranks.connect();
  run_threads(ranks, [&](int rank) { return ranks[rank].sink.count(Kind::kUp) == 3; });
  ranks.expect_no_breaches();
}

// Ranks 0 and 1 throw a slice of so many bytes to and fro, so many times.
void play_ping_pong(const OpenTransport& open, std::uint32_t bytes, std::uint32_t round_count,
                    Landing::How how) {
  RankHarness ranks(open, 2);
  ranks.connect_until_up();
  struct Player {
    std::vector<std::byte> source;
    std::vector<std::byte> target;
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
  };
  Player players[2];
  for (int rank = 0; rank < 2; ++rank) {
    auto& player = players[rank];
    player.source.resize(bytes);
    player.target.resize(bytes);
    ranks[rank].sink.decide = [&player, how](Endpoint&, const SliceHeader& header) {
      const bool is_new = header.signal == player.received;
      return Landing{is_new ? how : Landing::How::kDiscard, player.target.data()};
    };
    ranks[rank].sink.react = [&player](const RecordingSink::Event& event) {
      if (event.kind != Kind::kArrived || event.how == Landing::How::kDiscard) return;
      EXPECT_EQ(event.header.signal, player.received);
      const auto expected = std::byte(event.header.signal);
      EXPECT_TRUE(std::ranges::all_of(player.target, [&](auto byte) { return byte == expected; }));
      ++player.received;
    };
  }
  run_threads(ranks, [&](int rank) {
    auto& player = players[rank];
    const auto acknowledged = ranks[rank].sink.count(Kind::kAcknowledged);
    const auto may_send = std::min(player.received + (rank == 0 ? 1 : 0), round_count);
    if (player.sent < may_send && acknowledged == player.sent) {
      std::ranges::fill(player.source, std::byte(player.sent));
      SliceHeader header;
      header.bytes = bytes;
      header.signal = player.sent;
      auto& endpoint = *ranks[rank].endpoints[1 - rank];
      if (endpoint.put(header, player.source.data(), player.sent) != Posted::kBusy) ++player.sent;
    }
    return acknowledged == round_count && player.received == round_count;
  });
  ranks.expect_no_breaches();
}

TEST_P(TransportConformance, WakesForEachOfManySmallSlices) {
  play_ping_pong(open(), 8, 1000, Landing::How::kInto);
}

TEST_P(TransportConformance, WakesForEachOfManyLargeSlices) {
  play_ping_pong(open(), 300'000, 100, Landing::How::kInto);
}

TEST_P(TransportConformance, WakesForEachOfManyStreamedSlices) {
  RankHarness ranks(open(), 1);
  if (!ranks[0].transport->caps().can_stream) GTEST_SKIP() << "the transport does not stream";
  play_ping_pong(open(), 300'000, 100, Landing::How::kStream);
}

TEST_P(TransportConformance, WakesForControls) {
  RankHarness ranks(open(), 2);
  ranks.connect_until_up();
  constexpr std::size_t kRounds = 500;
  std::size_t sent[2] = {};
  run_threads(ranks, [&](int rank) {
    const auto heard = ranks[rank].sink.count(Kind::kControl);
    const auto may_send = std::min(heard + (rank == 0 ? 1 : 0), kRounds);
    if (sent[rank] < may_send) {
      const auto message = std::as_bytes(std::span("tick"));
      if (ranks[rank].endpoints[1 - rank]->send_control(message) != Posted::kBusy) ++sent[rank];
    }
    return sent[rank] == kRounds && heard == kRounds;
  });
  ranks.expect_no_breaches();
}

// All ranks send to all, many slices each, so that rings run full while others sleep.
TEST_P(TransportConformance, CarriesFloodsBetweenSleepers) {
  constexpr int kRanks = 3;
  constexpr std::uint64_t kSlices = 2000;  // to each peer
  RankHarness ranks(open(), kRanks);
  ranks.connect_until_up();
  struct Player {
    std::vector<std::byte> target = std::vector<std::byte>(9000);
    std::uint64_t sent[kRanks] = {};
  };
  std::vector<Player> players(kRanks);
  const std::vector<std::byte> source(9000, std::byte{9});
  for (int rank = 0; rank < kRanks; ++rank) {
    auto& player = players[rank];
    ranks[rank].sink.decide = [&player](Endpoint&, const SliceHeader& header) {
      const bool is_unwanted = header.signal % 3 == 0;
      return Landing{is_unwanted ? Landing::How::kDiscard : Landing::How::kInto,
                     player.target.data()};
    };
  }
  run_threads(ranks, [&](int rank) {
    auto& player = players[rank];
    bool has_more = false;
    for (int peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      while (player.sent[peer] < kSlices) {
        SliceHeader header;
        header.signal = static_cast<std::uint32_t>(player.sent[peer]);
        header.bytes = static_cast<std::uint32_t>(header.signal % 5 == 0 ? source.size() : 8);
        if (ranks[rank].endpoints[peer]->put(header, source.data(), header.signal) ==
            Posted::kBusy) {
          has_more = true;
          break;
        }
        ++player.sent[peer];
      }
    }
    const auto& sink = ranks[rank].sink;
    return !has_more && sink.count(Kind::kAcknowledged) == kSlices * (kRanks - 1) &&
           sink.count(Kind::kArrived) >= kSlices * (kRanks - 1);
  });
  ranks.expect_no_breaches();
}

}  // namespace
}  // namespace polyrail::testing
