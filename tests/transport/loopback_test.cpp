// What only the loopback transport promises; the rest is in the conformance suite.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "tests/support/rank_harness.hpp"
#include "transports/loopback/loopback.hpp"

namespace polyrail {
namespace {

using testing::HarnessRank;
using testing::open_builtin;
using testing::RankHarness;
using testing::RecordingSink;
using Kind = RecordingSink::Kind;

TEST(Loopback, OffersAsManyRailsAsAsked) {
  Options options;
  options.virtual_rails = 3;
  const auto rails = discover_loopback(options);
  ASSERT_TRUE(rails.is_ok());
  ASSERT_EQ(rails.value().size(), 3u);
  EXPECT_EQ(rails.value()[0].name, "loopback");
  EXPECT_EQ(rails.value()[2].name, "loopback2");
  EXPECT_EQ(rails.value()[2].kind, RailKind::kLoopback);
}

TEST(Loopback, StreamsFromTheSourceItself) {
  RankHarness ranks(open_builtin("loopback"), 2);
  ranks.connect_until_up();
  std::vector<std::byte> source(1 << 20), target(1 << 20);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = std::byte(i * 7);
  ranks[1].sink.decide = [&](Endpoint&, const SliceHeader&) {
    return Landing{Landing::How::kStream, target.data()};
  };
  SliceHeader header;
  header.bytes = static_cast<std::uint32_t>(source.size());
  ASSERT_EQ(ranks[0].endpoints[1]->put(header, source.data(), 5), Posted::kPosted);
  // The first part has been read, the rest has not: what is written there now is what arrives.
  ASSERT_TRUE(ranks[1].progress());
  ASSERT_EQ(ranks[1].sink.count(Kind::kArrived), 0u);
  source.back() = std::byte{0xee};
  ranks.progress_until([&] { return ranks[0].sink.count(Kind::kAcknowledged) == 1; });
  EXPECT_EQ(target, source);
  ranks.expect_no_breaches();
}

TEST(Loopback, TellsAPeerInAnotherProcessFromOneThatIsHere) {
  RankHarness ranks(open_builtin("loopback"), 2);
  auto address = ranks[1].transport->address();
  const auto digit = address.find(':') + 1;
  address[digit] = address[digit] == '0' ? '1' : '0';
  ASSERT_TRUE(ranks[0].transport->connect(1, address).is_ok());
  ranks.progress_until([&] { return ranks[0].sink.count(Kind::kDown) == 1; });
  EXPECT_NE(ranks[0].sink.events().front().text.find("another process"), std::string::npos);
}

TEST(Loopback, DeliversWhatWasSentBeforeTheSenderClosed) {
  RankHarness ranks(open_builtin("loopback"), 2);
  ranks.connect_until_up();
  const std::byte byte{1};
  SliceHeader header;
  header.bytes = 1;
  ASSERT_EQ(ranks[0].endpoints[1]->put(header, &byte, 1), Posted::kBuffered);
  ASSERT_EQ(ranks[0].endpoints[1]->send_control({&byte, 1}), Posted::kBuffered);
  ranks[0].transport.reset();
  ranks.progress_until([&] { return ranks[1].sink.count(Kind::kDown) == 1; });
  EXPECT_EQ(ranks[1].sink.count(Kind::kArrived), 1u);
  EXPECT_EQ(ranks[1].sink.count(Kind::kControl), 1u);
}

TEST(Loopback, DoesNotReadFromAPeerThatHasClosed) {
  for (int round = 0; round < 200; ++round) {
    RankHarness ranks(open_builtin("loopback"), 2);
    ranks.connect_until_up();
    std::vector<std::byte> target(1 << 20);
    ranks[1].sink.decide = [&](Endpoint&, const SliceHeader&) {
      return Landing{Landing::How::kInto, target.data()};
    };
    auto source = std::make_unique<std::vector<std::byte>>(target.size());
    SliceHeader header;
    header.bytes = static_cast<std::uint32_t>(target.size());
    ASSERT_EQ(ranks[0].endpoints[1]->put(header, source->data(), 1), Posted::kPosted);
    std::thread receiver(
        [&] { ranks[1].run_asleep([&] { return ranks[1].sink.count(Kind::kDown) == 1; }); });
    ranks[0].transport.reset();
    source.reset();  // a sanitizer sees a read from here on
    receiver.join();
  }
}

TEST(Loopback, WakesASleeperForEachMessage) {
  RankHarness ranks(open_builtin("loopback"), 2);
  ranks.connect_until_up();
  constexpr std::uint64_t kRounds = 20000;
  auto play = [&](int rank, bool is_first) {
    auto& own = ranks[rank];
    const std::byte byte{1};
    std::uint64_t sent = 0;
    const auto send = [&] {
      SliceHeader header;
      header.bytes = 1;
      while (own.endpoints[1 - rank]->put(header, &byte, sent) == Posted::kBusy) own.progress();
      ++sent;
    };
    if (is_first) send();
    own.run_asleep([&] {
      const auto arrived = own.sink.count(Kind::kArrived);
      if (sent < kRounds && sent < arrived + (is_first ? 1 : 0)) send();
      return arrived == kRounds && own.sink.count(Kind::kAcknowledged) == kRounds;
    });
  };
  std::thread other([&] { play(1, false); });
  play(0, true);
  other.join();
}

}  // namespace
}  // namespace polyrail
