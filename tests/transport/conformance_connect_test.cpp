// Conformance: how endpoints come up, or fail to.
#include <random>

#include "tests/transport/conformance.hpp"

namespace polyrail::testing {
namespace {

using Kind = RecordingSink::Kind;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST_P(TransportConformance, DescribesItself) {
  RankHarness ranks(open(), 2);
  const auto& transport = *ranks[0].transport;
  EXPECT_FALSE(transport.rail().name.empty());
  EXPECT_EQ(transport.rail().name, ranks[1].transport->rail().name);
  EXPECT_FALSE(transport.address().empty());
  EXPECT_GT(transport.caps().best_slice_bytes, 0u);
}

TEST_P(TransportConformance, ConnectsAllPairs) {
  for (int rank_count = 2; rank_count <= 4; ++rank_count) {
    RankHarness ranks(open(), rank_count);
    ranks.connect_until_up();
    for (int rank = 0; rank < rank_count; ++rank) {
      for (int peer = 0; peer < rank_count; ++peer) {
        if (peer == rank) continue;
        const auto message = std::to_string(rank) + ">" + std::to_string(peer);
        EXPECT_EQ(ranks[rank].endpoints[peer]->state(), EndpointState::kUp);
        EXPECT_EQ(ranks[rank].endpoints[peer]->send_control(as_bytes(message)), Posted::kBuffered);
      }
    }
    const auto others = static_cast<std::size_t>(rank_count - 1);
    ranks.progress_until([&] {
      for (int rank = 0; rank < rank_count; ++rank) {
        if (ranks[rank].sink.count(Kind::kControl) < others) return false;
      }
      return true;
    });
    for (int rank = 0; rank < rank_count; ++rank) {
      EXPECT_EQ(ranks[rank].sink.count(Kind::kUp), others);
      for (const auto& event : ranks[rank].sink.events(Kind::kControl)) {
        EXPECT_EQ(event.text, std::to_string(event.peer) + ">" + std::to_string(rank));
      }
    }
    ranks.expect_no_breaches();
  }
}

TEST_P(TransportConformance, TakesNothingBeforeItIsUp) {
  RankHarness ranks(open(), 2);
  const auto endpoint = ranks[0].transport->connect(1, ranks[1].transport->address());
  ASSERT_TRUE(endpoint.is_ok());
  EXPECT_EQ(endpoint.value()->state(), EndpointState::kConnecting);
  EXPECT_EQ(endpoint.value()->put(SliceHeader(), nullptr, 0), Posted::kBusy);
  EXPECT_EQ(endpoint.value()->send_control({}), Posted::kBusy);
}

// Two ranks of which only the second's context is changed.
struct Pair {
  HarnessRank first;
  HarnessRank second;
};

void open_pair(const OpenTransport& open, const TransportContext& first,
               const TransportContext& second, Pair& pair) {
  auto opened = open(first);
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  pair.first.transport = std::move(opened).value();
  auto other = open(second);
  ASSERT_TRUE(other.is_ok()) << other.status().message();
  pair.second.transport = std::move(other).value();
  ASSERT_TRUE(pair.first.transport->connect(1, pair.second.transport->address()).is_ok());
  ASSERT_TRUE(pair.second.transport->connect(0, pair.first.transport->address()).is_ok());
}

void expect_never_up(Pair& pair) {
  while (pair.first.sink.count(Kind::kDown) == 0 || pair.second.sink.count(Kind::kDown) == 0) {
    pair.first.progress();
    pair.second.progress();
    if (pair.first.sink.count(Kind::kUp) + pair.second.sink.count(Kind::kUp) > 0) break;
  }
  EXPECT_EQ(pair.first.sink.count(Kind::kUp), 0u);
  EXPECT_EQ(pair.second.sink.count(Kind::kUp), 0u);
  EXPECT_TRUE(pair.first.sink.breaches().empty());
  EXPECT_TRUE(pair.second.sink.breaches().empty());
}

TransportContext context_of(int rank) {
  TransportContext context;
  context.rank = rank;
  context.rank_count = 2;
  context.key = std::string(32, 'k');
  context.connect_timeout_ms = 300;
  return context;
}

TEST_P(TransportConformance, NeverJoinsPeersWithUnlikeKeys) {
  auto other = context_of(1);
  other.key.back() = 'x';
  Pair pair;
  open_pair(open(), context_of(0), other, pair);
  expect_never_up(pair);
}

TEST_P(TransportConformance, NeverJoinsTwoCommunicators) {
  auto other = context_of(1);
  other.communicator_id = 1;
  Pair pair;
  open_pair(open(), context_of(0), other, pair);
  expect_never_up(pair);
}

TEST_P(TransportConformance, GivesUpOnAPeerThatDoesNotConnect) {
  TransportContext context;
  context.connect_timeout_ms = 50;
  RankHarness ranks(open(), 2, context);
  ASSERT_TRUE(ranks[0].transport->connect(1, ranks[1].transport->address()).is_ok());
  // Asleep: the deadline itself has to wake the sleeper.
  ranks[0].run_asleep([&] { return ranks[0].sink.count(Kind::kDown) == 1; });
  EXPECT_EQ(ranks[0].sink.count(Kind::kUp), 0u);
  ranks.expect_no_breaches();
}

TEST_P(TransportConformance, SurvivesGarbageAddresses) {
  TransportContext context = context_of(0);
  context.rank_count = 200;
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  HarnessRank own;
  auto opened = open()(context);
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  own.transport = std::move(opened).value();
  context.rank = 1;
  const auto other = open()(context);
  ASSERT_TRUE(other.is_ok());
  const auto good = other.value()->address();

  std::vector<std::string> addresses = {"",
                                        "x",
                                        ":",
                                        std::string(1, '\0'),
                                        good + "x",
                                        good + good,
                                        std::string(1 << 16, 'a'),
                                        own.transport->address()};
  for (std::size_t size = 0; size < good.size(); size += 1 + good.size() / 20) {
    addresses.push_back(good.substr(0, size));
  }
  while (addresses.size() < 100) {
    std::string noise(random() % 300, '\0');
    for (auto& byte : noise) byte = static_cast<char>(random());
    addresses.push_back(std::move(noise));
    auto changed = good;  // the peer is there, but has not been asked to connect
    changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
    addresses.push_back(std::move(changed));
  }
  std::size_t endpoint_count = 0;
  int peer = 0;
  for (const auto& address : addresses) {
    const auto endpoint = own.transport->connect(++peer, address);
    if (endpoint.is_ok()) {
      ++endpoint_count;
    } else {
      EXPECT_FALSE(endpoint.status().message().empty());
    }
  }
  own.run_asleep([&] { return own.sink.count(Kind::kDown) == endpoint_count; });
  EXPECT_EQ(own.sink.count(Kind::kUp), 0u);
  EXPECT_TRUE(own.sink.breaches().empty());
}

}  // namespace
}  // namespace polyrail::testing
