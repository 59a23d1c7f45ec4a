// What only the shm transport promises, within one process; the rest is in the conformance suite.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <polyrail/communicator.hpp>

#include "tests/support/rank_harness.hpp"
#include "transports/shm/shm.hpp"

namespace polyrail {
namespace {

using testing::open_builtin;
using testing::RankHarness;
using testing::RecordingSink;
using Kind = RecordingSink::Kind;

std::byte pattern(std::size_t i) {
  return static_cast<std::byte>(i * 31 + (i >> 8) * 7 + (i >> 16));
}

// Where a payload lies at its sender; decides how the transport moves it.
enum class Source { kOrdinary, kShared };

struct Payload {
  Payload(Source kind, std::size_t bytes) : kind_(kind) {
    if (kind == Source::kShared) {
      auto memory = mem_alloc(bytes + kShift);
      EXPECT_TRUE(memory.is_ok()) << memory.status().message();
      block_ = memory.value();
    } else {
      block_ = std::malloc(bytes + kShift);
    }
    for (std::size_t i = 0; i < bytes; ++i) data()[i] = pattern(i);
  }
  ~Payload() {
    if (kind_ == Source::kShared) {
      EXPECT_TRUE(mem_free(block_).is_ok());
    } else {
      std::free(block_);
    }
  }
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;
  std::byte* data() { return static_cast<std::byte*>(block_) + kShift; }

 private:
  static constexpr std::size_t kShift = 8;  // not aligned to lines
  Source kind_;
  void* block_ = nullptr;
};

void expect_pattern(const std::vector<std::byte>& target) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    ASSERT_EQ(target[i], pattern(i)) << "at byte " << i << " of " << target.size();
  }
}

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
      expect_pattern(target);
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
    expect_pattern(target);
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  ranks.expect_no_breaches();
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

TEST(Shm, TellsAPeerOnAnotherHost) {
  RankHarness ranks(open_builtin("shm"), 2);
  std::string address = ranks[1].transport->address();
  address[8] = address[8] == '0' ? '1' : '0';  // first digit of the boot id
  ASSERT_TRUE(ranks[0].transport->connect(1, address).is_ok());
  ranks.progress_until([&] { return ranks[0].sink.count(Kind::kDown) == 1; });
  EXPECT_NE(ranks[0].sink.events().front().text.find("another host"), std::string::npos);
}

}  // namespace
}  // namespace polyrail
