// The fault decorator over loopback, driven by one thread and a clock of its own.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/transport/fault_support.hpp"

namespace polyrail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::faulty;
using testing::kNoLimit;
using testing::ManualClock;
using testing::OpenTransport;
using testing::RankHarness;
using testing::RecordingSink;
using testing::Sender;
using testing::settle;
using Kind = RecordingSink::Kind;

TEST(Fault, KeepsTheRateOverAnySliceSize) {
  for (const std::uint32_t bytes : {100u, 4096u, 65536u, 1u << 20}) {
    ManualClock clock;
    RankHarness ranks(faulty("rate=100MB/s,burst=64KiB", clock), 2);
    ranks.connect_until_up();
    Sender sender(ranks, bytes);
    const std::uint64_t total = bytes < 4096 ? 1'000'000 : 20'000'000;
    const auto start = clock.now();
    while (sender.arrived() * bytes < total) {
      sender.send(kNoLimit);
      settle(ranks);
      clock.advance(microseconds(50));
    }
    const auto seconds = std::chrono::duration<double>(clock.now() - start).count();
    const auto sent = static_cast<double>(sender.arrived()) * bytes;
    // The burst comes on top, the slice on its way is not there yet.
    EXPECT_NEAR(sent, 100e6 * seconds, 65536 + bytes + 100e6 * 50e-6) << bytes;
  }
}

TEST(Fault, KeepsTheRateWhenProgressIsRare) {
  ManualClock clock;
  RankHarness ranks(faulty("rate=100MB/s", clock), 2);
  ranks.connect_until_up();
  Sender sender(ranks, 64 * 1024);
  const auto start = clock.now();
  while (sender.arrived() * 65536 < 50'000'000) {
    sender.send(kNoLimit);
    settle(ranks);
    clock.advance(milliseconds(4));
  }
  const auto seconds = std::chrono::duration<double>(clock.now() - start).count();
  EXPECT_NEAR(static_cast<double>(sender.arrived()) * 65536, 100e6 * seconds, 0.01 * 50e6 + 400e3);
}

TEST(Fault, SendsOnlyTheBurstAtOnceAfterAPause) {
  ManualClock clock;
  RankHarness ranks(faulty("rate=1MB/s,burst=10KB", clock), 2);
  ranks.connect_until_up();
  clock.advance(std::chrono::hours(1));
  Sender sender(ranks, 1000);
  sender.send(100);
  settle(ranks);
  EXPECT_EQ(sender.arrived(), 10u);
  clock.advance(microseconds(999));
  settle(ranks);
  EXPECT_EQ(sender.arrived(), 10u);
  clock.advance(microseconds(2));
  settle(ranks);
  EXPECT_EQ(sender.arrived(), 11u);
}

TEST(Fault, SharesTheRateBetweenPeersInTurn) {
  ManualClock clock;
  RankHarness ranks(faulty("rate=10MB/s,burst=0", clock), 3);
  ranks.connect_until_up();
  std::vector<std::byte> source(1000);
  SliceHeader header;
  header.bytes = 1000;
  for (int i = 0; i < 10; ++i) {
    for (const int peer : {1, 2}) {
      ASSERT_NE(ranks[0].endpoints[peer]->put(header, source.data(), 0), Posted::kBusy);
    }
  }
  clock.advance(milliseconds(1));
  settle(ranks);
  EXPECT_EQ(ranks[1].sink.count(Kind::kArrived), 5u);
  EXPECT_EQ(ranks[2].sink.count(Kind::kArrived), 5u);
}

TEST(Fault, HoldsSlicesAndControlsForTheDelay) {
  ManualClock clock;
  RankHarness ranks(faulty("delay=1ms", clock), 2);
  ranks.connect_until_up();
  for (const std::uint32_t bytes : {8u, 100'000u}) {
    ranks[1].sink.forget();
    Sender sender(ranks, bytes);
    sender.send(3);
    ASSERT_EQ(sender.sent(), 3u);
    ASSERT_EQ(ranks[0].endpoints[1]->send_control({}), Posted::kBuffered);
    clock.advance(microseconds(999));
    settle(ranks);
    EXPECT_TRUE(ranks[1].sink.events().empty());
    clock.advance(microseconds(1));
    settle(ranks);
    EXPECT_EQ(sender.arrived(), 3u);
    EXPECT_EQ(ranks[1].sink.count(Kind::kControl), 1u);
  }
}

TEST(Fault, ReadsALargeSourceWhenItsTimeHasCome) {
  ManualClock clock;
  RankHarness ranks(faulty("delay=1ms", clock), 2);
  ranks.connect_until_up();
  std::vector<std::byte> source(100'000), target(source.size());
  ranks[1].sink.decide = [&](Endpoint&, const SliceHeader&) {
    return Landing{Landing::How::kInto, target.data()};
  };
  SliceHeader header;
  header.bytes = static_cast<std::uint32_t>(source.size());
  ASSERT_EQ(ranks[0].endpoints[1]->put(header, source.data(), 1), Posted::kPosted);
  source.front() = std::byte{7};  // not allowed to an engine; shows that nothing was copied
  clock.advance(milliseconds(1));
  settle(ranks);
  EXPECT_EQ(target.front(), std::byte{7});
}

// Which of 1000 slices arrive, in order of arrival.
std::vector<std::uint32_t> play(const std::string& settings) {
  ManualClock clock;
  RankHarness ranks(faulty(settings, clock), 2);
  ranks.connect_until_up();
  Sender sender(ranks, 1000);
  while (sender.sent() < 1000) {
    sender.send(std::min<std::uint64_t>(1000, sender.sent() + 8));
    ranks.progress();
  }
  settle(ranks);
  return sender.arrivals();
}

TEST(Fault, DropsItsShareForGood) {
  const auto arrivals = play("drop=0.2,seed=3");
  EXPECT_NEAR(static_cast<double>(arrivals.size()), 800, 60);
  EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end()));
  EXPECT_TRUE(play("drop=1").empty());
}

TEST(Fault, NeverAcknowledgesADroppedSlice) {
  ManualClock clock;
  RankHarness ranks(faulty("drop=0.5", clock), 2);
  ranks.connect_until_up();
  Sender sender(ranks, 1000);
  for (int i = 1; i <= 100; ++i) {
    sender.send(i);
    settle(ranks);
  }
  EXPECT_EQ(sender.sent(), 100u);
  EXPECT_EQ(ranks[0].sink.count(Kind::kAcknowledged), sender.arrived());
  for (const auto& event : ranks[0].sink.events(Kind::kAcknowledged)) {
    const auto arrivals = sender.arrivals();
    EXPECT_EQ(std::count(arrivals.begin(), arrivals.end(), event.cookie), 1);
  }
}

TEST(Fault, DuplicatesItsShareAndAcknowledgesOnce) {
  ManualClock clock;
  RankHarness ranks(faulty("duplicate=0.3,seed=5", clock), 2);
  ranks.connect_until_up();
  Sender sender(ranks, 1000);
  while (sender.sent() < 1000) {
    sender.send(1000);
    settle(ranks);
  }
  settle(ranks);
  EXPECT_NEAR(static_cast<double>(sender.arrived()), 1300, 70);
  std::vector<int> counts(1000);
  for (const auto& event : ranks[0].sink.events(Kind::kAcknowledged)) ++counts[event.cookie];
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), 1000);
}

TEST(Fault, ReordersWithinTheWindow) {
  const auto arrivals = play("reorder=4,seed=1");
  ASSERT_EQ(arrivals.size(), 1000u);
  EXPECT_FALSE(std::is_sorted(arrivals.begin(), arrivals.end()));
  // A slice overtakes at most the three before it.
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_LE(arrivals[i], i + 3);
  auto sorted = arrivals;
  std::sort(sorted.begin(), sorted.end());
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(sorted[i], i);
}

TEST(Fault, RepeatsItselfForTheSameSeed) {
  const std::string settings = "drop=0.1,duplicate=0.1,reorder=8,seed=";
  EXPECT_EQ(play(settings + "1"), play(settings + "1"));
  EXPECT_NE(play(settings + "1"), play(settings + "2"));
}

TEST(Fault, GoesDownAfterSoManyBytes) {
  ManualClock clock;
  RankHarness ranks(faulty("down_after=100KB", clock), 2);
  ranks.connect_until_up();
  Sender sender(ranks, 10'000);
  while (ranks[0].sink.count(Kind::kDown) == 0) {
    sender.send(sender.sent() + 1);
    ranks.progress();
  }
  EXPECT_EQ(sender.sent(), 10u);
  EXPECT_NE(ranks[0].sink.events(Kind::kDown).front().text.find("fault"), std::string::npos);
  ranks.progress_until([&] { return ranks[1].sink.count(Kind::kDown) == 1; });
  sender.send(kNoLimit);
  EXPECT_EQ(sender.sent(), 10u);
  ranks.expect_no_breaches();
}

TEST(Decorate, AppliesTheClausesThatMatch) {
  Options options;
  options.virtual_rails = 2;
  options.fault = "loopback1:down_after=1B;other:drop=1";
  const auto open = [&](const std::string& rail) -> OpenTransport {
    return [=](const TransportContext& context) -> Result<std::unique_ptr<Transport>> {
      auto transport = testing::open_builtin("loopback", options, rail)(context);
      if (!transport.is_ok()) return transport;
      auto* const plain = transport.value().get();
      auto decorated = decorate(std::move(transport).value(), options);
      EXPECT_TRUE(decorated.is_ok());
      EXPECT_EQ(decorated.value().get() == plain, rail == "loopback");
      EXPECT_EQ(decorated.value()->rail().name, rail);
      return decorated;
    };
  };
  RankHarness plain(open("loopback"), 2);
  RankHarness faulty_ranks(open("loopback1"), 2);
  options.fault = "nonsense";
  auto transport = testing::open_builtin("loopback")({.key = std::string(32, 'k')});
  ASSERT_TRUE(transport.is_ok());
  EXPECT_FALSE(decorate(std::move(transport).value(), options).is_ok());
}

}  // namespace
}  // namespace polyrail
