// Commands to a decorated rail while it runs.
#include <gtest/gtest.h>

#include <thread>

#include "tests/transport/fault_support.hpp"

namespace polyrail {
namespace {

using std::chrono::milliseconds;
using testing::faulty;
using testing::ManualClock;
using testing::RankHarness;
using testing::RecordingSink;
using testing::Sender;
using testing::settle;
using Kind = RecordingSink::Kind;

TEST(FaultControl, ChangesTheRateOfWhatWaits) {
  ManualClock clock;
  FaultControl control;
  RankHarness ranks(faulty("rate=1MB/s,burst=0", clock, &control), 2);
  ranks.connect_until_up();
  Sender sender(ranks, 1000);
  sender.send(100);
  ASSERT_EQ(sender.sent(), 100u);
  clock.advance(milliseconds(10));
  settle(ranks);
  EXPECT_EQ(sender.arrived(), 10u);
  control.set_rate(9e6);
  settle(ranks);
  clock.advance(milliseconds(10));
  settle(ranks);
  EXPECT_EQ(sender.arrived(), 100u);
}

TEST(FaultControl, HoldsEverythingInABlackHoleUntilItHeals) {
  for (const auto hole : {BlackHole::kOutbound, BlackHole::kBoth}) {
    ManualClock clock;
    FaultControl control;
    RankHarness ranks(faulty("delay=1ms,rate=1GB/s", clock, &control), 2);
    ranks.connect_until_up();
    Sender sender(ranks, 1000);
    sender.send(10);
    control.set_black_hole(hole);
    ASSERT_EQ(ranks[1].endpoints[0]->send_control({}), Posted::kBuffered);
    clock.advance(std::chrono::seconds(10));
    settle(ranks);
    sender.send(20);
    settle(ranks);
    EXPECT_EQ(sender.arrived(), 0u);
    EXPECT_EQ(ranks[0].sink.count(Kind::kAcknowledged), 0u);
    EXPECT_EQ(ranks[0].sink.count(Kind::kControl), hole == BlackHole::kBoth ? 0u : 1u);
    EXPECT_EQ(ranks[0].endpoints[1]->state(), EndpointState::kUp);
    control.heal();
    while (sender.arrived() < 20) {
      settle(ranks);
      clock.advance(milliseconds(1));
    }
    EXPECT_EQ(ranks[0].sink.count(Kind::kControl), 1u);
    ranks.expect_no_breaches();
  }
}

TEST(FaultControl, TakesTheRailDownAtBothEnds) {
  ManualClock clock;
  FaultControl control;
  RankHarness ranks(faulty("delay=1ms", clock, &control), 3);
  ranks.connect_until_up();
  Sender sender(ranks, 100'000);
  sender.send(3);
  auto region = ranks[0].transport->register_memory({});
  control.fail(Status(StatusCode::kSystemError, "the cable was cut"));
  ranks.progress_until([&] {
    return ranks[0].sink.count(Kind::kDown) == 2 && ranks[1].sink.count(Kind::kDown) == 1 &&
           ranks[2].sink.count(Kind::kDown) == 1;
  });
  EXPECT_EQ(ranks[0].sink.events(Kind::kDown).front().text, "the cable was cut");
  EXPECT_FALSE(ranks[0].transport->connect(1, ranks[1].transport->address()).is_ok());
  EXPECT_EQ(ranks[1].endpoints[2]->state(), EndpointState::kUp);
  ranks.expect_no_breaches();
}

TEST(FaultControl, TakesOneEndpointDownWhenNothingLandsThere) {
  ManualClock clock;
  FaultControl control;
  RankHarness ranks(faulty("delay=1ms", clock, &control), 3);
  ranks.connect_until_up();
  std::vector<std::byte> source(1 << 20), target(source.size());
  ranks[0].sink.decide = [&](Endpoint&, const SliceHeader&) {
    return Landing{Landing::How::kInto, target.data()};
  };
  SliceHeader header;
  header.bytes = static_cast<std::uint32_t>(source.size());
  ASSERT_EQ(ranks[1].endpoints[0]->put(header, source.data(), 1), Posted::kPosted);
  ASSERT_EQ(ranks[1].endpoints[0]->put(header, source.data(), 2), Posted::kPosted);
  ASSERT_TRUE(ranks[0].progress());  // a part of the first
  control.fail_peer(1, Status(StatusCode::kSystemError, "unplugged"));
  ASSERT_TRUE(ranks[0].progress());
  EXPECT_EQ(ranks[0].sink.count(Kind::kDown), 0u);
  settle(ranks);
  ASSERT_EQ(ranks[0].sink.count(Kind::kDown), 1u);
  EXPECT_EQ(ranks[0].sink.events(Kind::kDown).front().text, "unplugged");
  EXPECT_EQ(ranks[0].sink.count(Kind::kArrived), 1u) << "the second was taken in";
  EXPECT_EQ(ranks[1].sink.count(Kind::kAcknowledged), 1u);
  EXPECT_EQ(ranks[0].endpoints[1]->send_control({}), Posted::kBusy);
  EXPECT_EQ(ranks[0].endpoints[2]->state(), EndpointState::kUp);
  ranks.expect_no_breaches();
}

TEST(FaultControl, WakesASleeper) {
  ManualClock clock;
  FaultControl control;
  RankHarness ranks(faulty("delay=1ms", clock, &control), 2);
  ranks.connect_until_up();
  std::thread sleeper(
      [&] { ranks[0].run_asleep([&] { return ranks[0].sink.count(Kind::kDown) == 1; }); });
  control.fail(Status(StatusCode::kSystemError, "the cable was cut"));
  sleeper.join();
}

}  // namespace
}  // namespace polyrail
