// Ten thousand random calls over several communicators and streams, with messages beside them:
// every result is checked, and nothing may hang.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "tests/collective/expected.hpp"
#include "tests/collective/ranks.hpp"

namespace polyrail {
namespace {

using testing::Case;
using testing::CaseRun;

constexpr Collective kCollectives[] = {
    Collective::kAllReduce,     Collective::kReduce,       Collective::kBroadcast,
    Collective::kReduceScatter, Collective::kAllGather,    Collective::kAllToAll,
    Collective::kGather,        Collective::kScatter,      Collective::kBarrier,
    Collective::kScan,          Collective::kExclusiveScan};

Case draw_case(std::mt19937& random, int ranks) {
  Case c;
  c.collective = kCollectives[random() % std::size(kCollectives)];
  c.count = random() % 8 == 0 ? random() % 20000 : random() % 60;
  c.op = random() % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax;
  c.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
  c.is_in_place = random() % 2 == 0;
  c.shift_bytes = random() % 2 * 4;
  const bool has_parts =
      c.collective >= Collective::kReduceScatter && c.collective <= Collective::kScatter;
  if (has_parts && random() % 3 == 0) {
    const int square = c.collective == Collective::kAllToAll ? ranks : 1;
    for (int i = 0; i < ranks * square; ++i) c.counts.push_back(random() % 50);
  }
  return c;
}

TEST(Soak, TenThousandCallsOverCommunicatorsAndStreams) {
  constexpr int kRanks = 3;
  constexpr int kRounds = 100;
  constexpr int kCallsPerRound = 100;
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  run_ranks(kRanks, quick_options("shm,loopback"), [&](int rank, Communicator& first) {
    auto second = first.dup();
    ASSERT_TRUE(second.is_ok()) << second.status().message();
    Communicator* const communicators[] = {&first, second.value().get()};
    std::deque<Stream> streams(3);
    std::mt19937 random(seed);  // the same on all ranks
    for (int round = 0; round < kRounds; ++round) {
      std::deque<CaseRun<float>> runs;
      std::vector<Work> works;
      for (int i = 0; i < kCallsPerRound; ++i) {
        Communicator& communicator = *communicators[random() % 2];
        const Case c = draw_case(random, kRanks);
        runs.emplace_back(c, rank, kRanks, static_cast<std::uint64_t>(i));
        const unsigned way = random() % 8;
        if (way < 3) {
          ASSERT_TRUE(streams[way].start(communicator, runs.back().call()).is_ok()) << c.text();
        } else if (way < 7) {
          works.push_back(communicator.start(runs.back().call()));
        } else {
          const Status status = communicator.run(runs.back().call());
          ASSERT_TRUE(status.is_ok()) << c.text() << ": " << status.message();
        }
      }
      // Everybody sends round the ring beside all that.
      std::vector<int> sent(100, rank);
      std::vector<int> received(100);
      const Status ring = first.send_receive(sent.data(), 100, (rank + 1) % kRanks, received.data(),
                                             100, (rank + kRanks - 1) % kRanks, DataType::kInt32);
      ASSERT_TRUE(ring.is_ok()) << ring.message();
      ASSERT_EQ(received, std::vector<int>(100, (rank + kRanks - 1) % kRanks));
      for (Work& work : works) ASSERT_TRUE(work.wait().is_ok()) << work.wait().message();
      for (Stream& stream : streams) {
        const Status status = stream.synchronize();
        ASSERT_TRUE(status.is_ok()) << status.message();
      }
      for (auto& run : runs) run.check();
      if (HasFatalFailure()) return;
    }
  });
}

}  // namespace
}  // namespace polyrail
