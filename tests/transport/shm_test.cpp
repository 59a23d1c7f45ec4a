// What only the shm transport promises, within one process; the rest is in the conformance suite.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include <polyrail/communicator.hpp>

#include "tests/transport/shm_support.hpp"
#include "transports/shm/shm.hpp"

namespace polyrail {
namespace {

using testing::expect_payload;
using testing::Leftovers;
using testing::open_builtin;
using testing::Payload;
using testing::RankHarness;
using testing::RecordingSink;
using testing::Source;
using Kind = RecordingSink::Kind;

class ShmSizes : public ::testing::TestWithParam<Source> {};

TEST_P(ShmSizes, CarriesEverySizeIntoItsPlaceAndAsAStream) {
  constexpr std::size_t kSizes[] = {
      0,     1,      7,      8,      23,      24,      25,      63,       64,      65,
      4095,  4096,   4097,   8191,   8192,    8193,    32767,   32768,    32769,   65537,
      99999, 262143, 262145, 524288, 1048575, 1048577, 3000001, 41943040, 41943041};
  for (const auto how : {Landing::How::kInto, Landing::How::kStream}) {
    RankHarness ranks(open_builtin("shm"), 2);
    ranks.connect_until_up();
    for (const std::size_t bytes : kSizes) {
      Payload source(GetParam(), bytes);
      std::vector<std::byte> target(bytes);
      ranks[1].sink.decide = [&](Endpoint&, const SliceHeader&) {
        return Landing{how, target.data()};
      };
      SliceHeader header;
      header.bytes = static_cast<std::uint32_t>(bytes);
      ASSERT_NE(ranks[0].endpoints[1]->put(header, source.data(), bytes), Posted::kBusy);
      const auto before = ranks[0].sink.count(Kind::kAcknowledged);
      ranks.progress_until([&] { return ranks[0].sink.count(Kind::kAcknowledged) > before; });
      EXPECT_EQ(ranks[0].sink.events().back().cookie, bytes);
      expect_payload(target);
    }
    ranks.expect_no_breaches();
  }
}

INSTANTIATE_TEST_SUITE_P(Shm, ShmSizes, ::testing::Values(Source::kOrdinary, Source::kShared),
                         [](const auto& suite) {
                           return suite.param == Source::kShared ? "Shared" : "Ordinary";
                         });

TEST(Shm, MovesBothDirectionsAtOnceBetweenThreads) {
  constexpr std::uint32_t kBytes = 300'007;
  constexpr std::uint32_t kSlices = 200;
  RankHarness ranks(open_builtin("shm"), 2);
  ranks.connect_until_up();
  const auto play = [&](int rank) {
    auto& own = ranks[rank];
    Payload source(Source::kOrdinary, kBytes);
    std::vector<std::byte> target(kBytes);
    std::uint32_t sent = 0;
    own.sink.decide = [&](Endpoint&, const SliceHeader& header) {
      EXPECT_EQ(header.bytes, kBytes - header.signal);
      return Landing{header.signal % 2 == 0 ? Landing::How::kInto : Landing::How::kStream,
                     target.data()};
    };
    own.run_asleep([&] {
      while (sent < kSlices) {
        SliceHeader header;
        header.signal = sent;
        header.bytes = kBytes - sent;
        if (own.endpoints[1 - rank]->put(header, source.data(), sent) == Posted::kBusy) break;
        ++sent;
      }
      return own.sink.count(Kind::kArrived) == kSlices &&
             own.sink.count(Kind::kAcknowledged) == kSlices;
    });
    target.resize(kBytes - (kSlices - 1));
    expect_payload(target);
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  ranks.expect_no_breaches();
}

TEST(Shm, StreamsLargePartsOfSharedMemoryWithoutACopy) {
  RankHarness ranks(open_builtin("shm"), 2);
  ranks.connect_until_up();
  constexpr std::uint32_t kBytes = 1'000'000;
  Payload source(Source::kShared, kBytes);
  std::vector<std::byte> target(kBytes);
  ranks[1].sink.decide = [&](Endpoint&, const SliceHeader&) {
    return Landing{Landing::How::kStream, target.data()};
  };
  SliceHeader header;
  header.bytes = kBytes;
  ASSERT_EQ(ranks[0].endpoints[1]->put(header, source.data(), 5), Posted::kPosted);
  // The first part has been read, the rest has not: what is written there now is what arrives.
  ASSERT_TRUE(ranks[1].progress());
  ASSERT_EQ(ranks[1].sink.count(Kind::kArrived), 0u);
  source.data()[kBytes - 1] ^= std::byte{0xff};
  ranks.progress_until([&] { return ranks[0].sink.count(Kind::kAcknowledged) == 1; });
  target.back() ^= std::byte{0xff};
  expect_payload(target);
}

TEST(Shm, TellsBlocksApartThatTookTheSamePlaceOneAfterTheOther) {
  RankHarness ranks(open_builtin("shm"), 2);
  ranks.connect_until_up();
  constexpr std::uint32_t kBytes = 20'000;
  std::vector<std::byte> target(kBytes);
  ranks[1].sink.decide = [&](Endpoint&, const SliceHeader&) {
    return Landing{Landing::How::kInto, target.data()};
  };
  for (unsigned round = 0; round < 200; ++round) {  // more than a receiver keeps mapped
    Payload source(Source::kShared, kBytes, round);
    SliceHeader header;
    header.bytes = kBytes;
    ASSERT_EQ(ranks[0].endpoints[1]->put(header, source.data(), round), Posted::kPosted);
    ranks.progress_until([&] { return ranks[0].sink.count(Kind::kAcknowledged) == round + 1; });
    expect_payload(target, round);
  }
}

TEST(Shm, IsBusyWhileTheRingIsFull) {
  RankHarness ranks(open_builtin("shm"), 2);
  ranks.connect_until_up();
  std::uint32_t taken = 0;
  while (ranks[0].endpoints[1]->put(SliceHeader(), nullptr, taken) == Posted::kBuffered) ++taken;
  EXPECT_GE(taken, 64u);
  EXPECT_EQ(ranks[0].endpoints[1]->send_control({}), Posted::kBusy);
  ranks.progress_until([&] { return ranks[0].sink.count(Kind::kAcknowledged) == taken; });
  EXPECT_EQ(ranks[0].endpoints[1]->put(SliceHeader(), nullptr, taken), Posted::kBuffered);
}

TEST(Shm, LeavesNothingBehind) {
  const Leftovers before = Leftovers::now();
  for (int round = 0; round < 3; ++round) {
    RankHarness ranks(open_builtin("shm"), 3);
    ranks.connect_until_up();
    Payload source(Source::kShared, 100'000);
    SliceHeader header;
    header.bytes = 100'000;
    ASSERT_EQ(ranks[0].endpoints[2]->put(header, source.data(), 0), Posted::kPosted);
    ranks.progress_until([&] { return ranks[0].sink.count(Kind::kAcknowledged) == 1; });
    EXPECT_NE(Leftovers::now(), before);
  }
  EXPECT_EQ(Leftovers::now(), before);
}

TEST(Shm, RefusesAPeerWithAnotherKey) {
  RankHarness ranks(open_builtin("shm"), 2);
  TransportContext context;
  context.rank = 1;
  context.rank_count = 2;
  context.key = std::string(32, '?');
  auto stranger = open_builtin("shm")(context);
  ASSERT_TRUE(stranger.is_ok());
  RecordingSink sink;
  ASSERT_TRUE(ranks[0].transport->connect(1, stranger.value()->address()).is_ok());
  ASSERT_TRUE(stranger.value()->connect(0, ranks[0].transport->address()).is_ok());
  ranks.progress_until([&] {
    stranger.value()->progress(sink);
    return ranks[0].sink.count(Kind::kDown) == 1 && sink.count(Kind::kDown) == 1;
  });
  EXPECT_NE(ranks[0].sink.events().front().text.find("proof"), std::string::npos);
}

// Rank 0 is told the address of rank 1 with one byte changed, at an offset within shm::Address.
void expect_down_after_change(std::size_t place, const std::string& reason) {
  RankHarness ranks(open_builtin("shm"), 2);
  std::string address = ranks[1].transport->address();
  address[place] = static_cast<char>(address[place] ^ 1);
  ASSERT_TRUE(ranks[0].transport->connect(1, address).is_ok());
  ranks[0].run_asleep([&] { return ranks[0].sink.count(Kind::kDown) == 1; });
  EXPECT_NE(ranks[0].sink.events().front().text.find(reason), std::string::npos)
      << ranks[0].sink.events().front().text;
}

TEST(Shm, TellsAPeerOnAnotherHost) {
  expect_down_after_change(8, "another host");
}

TEST(Shm, TellsAPeerInAnotherContainer) {
  expect_down_after_change(16, "another container");
}

TEST(Shm, RefusesAnAddressOfNonsense) {
  RankHarness ranks(open_builtin("shm"), 2);
  EXPECT_FALSE(ranks[0].transport->connect(1, "").is_ok());
  EXPECT_FALSE(ranks[0].transport->connect(1, std::string(72, 'x')).is_ok());
  EXPECT_FALSE(ranks[0].transport->connect(2, ranks[1].transport->address()).is_ok());
  std::string address = ranks[1].transport->address();
  address.resize(address.size() - 1);
  EXPECT_FALSE(ranks[0].transport->connect(1, address).is_ok());
}

}  // namespace
}  // namespace polyrail
