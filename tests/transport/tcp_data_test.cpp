// Slices, controls and acknowledgements between ranks over tcp, with one socket and with several.
#include <poll.h>

#include <algorithm>

#include "tests/transport/tcp_support.hpp"
#include "transports/tcp/wire.hpp"

namespace polyrail::tcp_test {
namespace {

// Rank 1 sends to rank 0, which lets slices land unless a test says otherwise.
class TcpData : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    ranks.connect_until_up();
    ranks[0].sink.decide = std::ref(landings);
    ranks[1].sink.decide = std::ref(landings_at_1);
  }
  void TearDown() override { ranks.expect_no_breaches(); }
  bool is_up() { return ranks[0].sink.count(Kind::kDown) + ranks[1].sink.count(Kind::kDown) == 0; }
  void put(int rank, const SliceHeader& header, const std::vector<std::byte>& source,
           std::uint64_t cookie) {
    while (ranks[rank].endpoints[1 - rank]->put(header, source.data(), cookie) == Posted::kBusy) {
      ASSERT_TRUE(is_up());
      ranks.progress();
    }
  }
  void send_control(int rank, std::string_view text) {
    while (ranks[rank].endpoints[1 - rank]->send_control(bytes_of(text)) == Posted::kBusy) {
      ASSERT_TRUE(is_up());
      ranks.progress();
    }
  }
  void progress_until_acknowledged(int rank, std::size_t count) {
    ranks.progress_until(
        [&] { return !is_up() || ranks[rank].sink.count(Kind::kAcknowledged) >= count; });
    ASSERT_TRUE(is_up());
  }

  Landings landings;
  Landings landings_at_1;
  RankHarness ranks{open_lo(with_sockets(GetParam())), 2};
};
INSTANTIATE_TEST_SUITE_P(Sockets, TcpData, ::testing::Values(1, 3));

TEST_P(TcpData, CarriesSlicesOfManySizesUnchanged) {
  const std::size_t limit = ranks[1].transport->caps().buffered_bytes;
  const std::size_t sizes[] = {0,         1,     2,         63,     64,       4095,
                               limit - 1, limit, limit + 1, 100000, 10 << 20, 7};
  std::vector<std::vector<std::byte>> sources;
  for (const std::size_t size : sizes) {
    sources.push_back(pattern(size, static_cast<std::uint32_t>(size)));
  }
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    put(1, slice(i, sources[i].size()), sources[i], i);
  }
  progress_until_acknowledged(1, sources.size());
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(landings[i], sources[i]) << "slice " << i;
  }
  EXPECT_EQ(ranks[0].sink.count(Kind::kArrived), sources.size());
}

TEST_P(TcpData, CarriesTrafficInBothDirectionsAtOnce) {
  const auto source = pattern(3 << 20, 5);
  constexpr std::uint32_t kSlices = 40;
  for (std::uint32_t i = 0; i < kSlices; ++i) {
    for (int rank : {0, 1}) put(rank, slice(i, source.size() / (1 + i)), source, i);
  }
  for (int rank : {0, 1}) progress_until_acknowledged(rank, kSlices);
  for (std::uint32_t i = 0; i < kSlices; ++i) {
    const std::vector<std::byte> expected(source.begin(), source.begin() + source.size() / (1 + i));
    EXPECT_EQ(landings[i], expected) << "slice " << i;
    EXPECT_EQ(landings_at_1[i], expected) << "slice " << i;
  }
}

TEST_P(TcpData, AcceptsChangedSourcesOnlyOfBufferedSlices) {
  const std::size_t limit = ranks[1].transport->caps().buffered_bytes;
  auto small = pattern(limit, 1);
  const auto original = small;
  EXPECT_EQ(ranks[1].endpoints[0]->put(slice(0, limit), small.data(), 0), Posted::kBuffered);
  std::fill(small.begin(), small.end(), std::byte{0});
  const auto large = pattern(limit + 1, 2);
  EXPECT_EQ(ranks[1].endpoints[0]->put(slice(1, limit + 1), large.data(), 1), Posted::kPosted);
  progress_until_acknowledged(1, 2);
  EXPECT_EQ(landings[0], original);
  EXPECT_EQ(landings[1], large);
}

TEST_P(TcpData, HoldsBackWhatStandsBehindAStalledSlice) {
  bool is_entered = false;
  ranks[0].sink.decide = [&](Endpoint& from, const SliceHeader& header) {
    if (header.operation == 1 && !is_entered) return Landing{Landing::How::kLater, nullptr};
    return landings(from, header);
  };
  const auto source = pattern(100000, 3);
  put(1, slice(0, 10, 0), source, 0);
  put(1, slice(1, 100000, 1), source, 1);
  put(1, slice(2, 10, 0), source, 2);
  send_control(1, "behind");
  ranks.progress_until([&] { return ranks[0].sink.count(Kind::kArrived) == 1; });
  const std::size_t asked = ranks[0].sink.question_count();
  for (int i = 0; i < 1000; ++i) ranks.progress();
  EXPECT_GT(ranks[0].sink.question_count(), asked);
  EXPECT_EQ(ranks[0].sink.count(Kind::kArrived), 1U);
  EXPECT_EQ(ranks[0].sink.count(Kind::kControl), 0U);

  is_entered = true;
  progress_until_acknowledged(1, 3);
  ranks.progress_until([&] { return ranks[0].sink.count(Kind::kControl) == 1; });
  put(1, slice(3, 10, 1), source, 3);
  progress_until_acknowledged(1, 4);
  std::map<std::uint64_t, bool> was_stalled;
  for (const auto& event : ranks[1].sink.events(Kind::kAcknowledged)) {
    was_stalled[event.cookie] = event.was_stalled;
  }
  EXPECT_FALSE(was_stalled[0]);
  EXPECT_TRUE(was_stalled[1]);
  EXPECT_TRUE(was_stalled[2]);
  EXPECT_FALSE(was_stalled[3]);
}

TEST_P(TcpData, TellsWhatHadArrivedBehindASliceThatLanded) {
  bool is_entered = false;
  ranks[0].sink.decide = [&](Endpoint& from, const SliceHeader& header) {
    if (header.operation == 1 && !is_entered) return Landing{Landing::How::kLater, nullptr};
    return landings(from, header);
  };
  const auto source = pattern(40000, 3);
  put(1, slice(0, 30000, 0), source, 0);
  put(1, slice(1, 40000, 1), source, 1);
  progress_until_acknowledged(1, 1);
  is_entered = true;
  progress_until_acknowledged(1, 2);
  const auto events = ranks[1].sink.events(Kind::kAcknowledged);
  ASSERT_EQ(events.size(), 2U);
  for (const auto& event : events) EXPECT_GE(event.landed_us, 0);
  EXPECT_LE(events[0].landed_us, events[1].landed_us);
  // All was written to the socket before anybody read. Who has several sockets does not tell.
  EXPECT_EQ(events[0].ahead_bytes, GetParam() == 1 ? 40000U + tcp::kSliceHeadBytes : 0U);
  EXPECT_EQ(events[1].ahead_bytes, 0U);
}

TEST_P(TcpData, AcknowledgesDiscardedSlicesWithoutWritingThem) {
  ranks[0].sink.decide = [&](Endpoint& from, const SliceHeader& header) {
    if (header.signal % 2 == 0) return Landing{Landing::How::kDiscard, nullptr};
    return landings(from, header);
  };
  const auto source = pattern(300000, 4);
  for (std::uint32_t i = 0; i < 8; ++i) put(1, slice(i, source.size() / (i + 1)), source, i);
  progress_until_acknowledged(1, 8);
  EXPECT_EQ(landings[0].size(), 0U);
  EXPECT_TRUE(std::equal(landings[7].begin(), landings[7].end(), source.begin()));
}

TEST_P(TcpData, WritesNothingMoreOfAnOperationAfterDiscardIncoming) {
  const auto source = pattern(8 << 20, 6);
  std::vector<std::byte> target(source.size());
  ranks[0].sink.decide = [&](Endpoint&, const SliceHeader&) {
    return Landing{Landing::How::kInto, target.data()};
  };
  put(1, slice(0, source.size(), 5), source, 0);
  ranks.progress_until([&] { return target[0] == source[0] && target[1] == source[1]; });
  ASSERT_NE(target.back(), source.back()) << "it was received at once: the test needs more bytes";
  ranks[0].endpoints[1]->discard_incoming(5);
  const auto frozen = target;
  progress_until_acknowledged(1, 1);
  EXPECT_EQ(target, frozen);
  EXPECT_EQ(ranks[0].sink.count(Kind::kArrived), 0U);
  put(1, slice(1, source.size(), 6), source, 1);
  progress_until_acknowledged(1, 2);
  EXPECT_EQ(target, source);
}

TEST_P(TcpData, DeliversControlsInOrderAmongSlices) {
  const auto source = pattern(200000, 7);
  const std::string longest(Endpoint::kMaxControlBytes, 'x');
  std::vector<std::string> sent, heard;
  ranks[0].sink.react = [&](const RecordingSink::Event& event) {
    if (event.kind == Kind::kControl) heard.push_back(event.text);
    // The order of the ends of slices is only fixed where a control stands between them.
    if (event.kind == Kind::kArrived) heard.push_back(std::to_string(event.header.signal));
  };
  for (std::uint32_t i = 0; i < 60; ++i) {
    put(1, slice(i, i % 3 == 0 ? source.size() : i), source, i);
    const std::string text = i % 4 == 0 ? "" : (i % 4 == 1 ? longest : "control");
    send_control(1, text);
    sent.insert(sent.end(), {std::to_string(i), text});
  }
  ranks.progress_until([&] { return !is_up() || heard.size() == sent.size(); });
  EXPECT_EQ(heard, sent);
}

TEST_P(TcpData, IsBusyWhenAPeerTakesNothingAndGoesOnWhenItDoes) {
  bool is_entered = false;
  ranks[0].sink.decide = [&](Endpoint& from, const SliceHeader& header) {
    if (!is_entered) return Landing{Landing::How::kLater, nullptr};
    return landings(from, header);
  };
  const auto source = pattern(100, 8);
  std::uint32_t posted = 0;
  while (ranks[1].endpoints[0]->put(slice(posted, 100), source.data(), posted) != Posted::kBusy) {
    ++posted;
    ranks.progress();
    ASSERT_LT(posted, 10000U);
  }
  EXPECT_GE(posted, 16U);
  is_entered = true;
  progress_until_acknowledged(1, posted);
  put(1, slice(posted, 100), source, posted);
  progress_until_acknowledged(1, posted + 1);
}

TEST_P(TcpData, TellsAnEndpointOnceThatItsPeerHasVanished) {
  const auto source = pattern(50 << 20, 9);
  put(1, slice(0, source.size()), source, 0);
  ranks.progress();
  ranks[0].transport.reset();
  ranks.progress_until([&] { return ranks[1].sink.count(Kind::kDown) == 1; });
  const std::string why = ranks[1].sink.events(Kind::kDown).front().text;
  EXPECT_NE(why.find("rank 0"), std::string::npos) << why;
  EXPECT_NE(why.find("127.0.0.1:"), std::string::npos) << why;
  EXPECT_NE(why.find("(lo)"), std::string::npos) << why;
  EXPECT_EQ(ranks[1].endpoints[0]->put(slice(1, 1), source.data(), 1), Posted::kBusy);
  EXPECT_EQ(ranks[1].endpoints[0]->send_control(bytes_of("x")), Posted::kBusy);
  ranks[1].endpoints[0]->expect(true);
  for (int i = 0; i < 100; ++i) ranks.progress();
  EXPECT_EQ(ranks[1].sink.count(Kind::kDown), 1U);
}

TEST_P(TcpData, DeliversWhatCameBeforeThePeerVanished) {
  const auto source = pattern(5000, 10);
  for (std::uint32_t i = 0; i < 20; ++i) put(1, slice(i, source.size()), source, i);
  send_control(1, "farewell");
  ranks[1].transport.reset();
  // An answer makes the peer's system reset the socket while its last words are still unread.
  put(0, slice(0, source.size()), source, 0);
  ranks.progress_until([&] { return ranks[0].sink.count(Kind::kDown) == 1; });
  EXPECT_EQ(ranks[0].sink.count(Kind::kArrived), 20U);
  EXPECT_EQ(ranks[0].sink.count(Kind::kControl), 1U);
}

TEST_P(TcpData, EndsOnlyWhenThePeerHasWhatItWasSent) {
  const auto source = pattern(60000, 11);
  std::thread receiver([&] {
    while (ranks[0].sink.count(Kind::kDown) == 0) ranks[0].progress();
  });
  constexpr std::uint32_t kSlices = 30;  // more than the system's buffers hold at the start
  for (std::uint32_t i = 0; i < kSlices; ++i) {
    while (ranks[1].endpoints[0]->put(slice(i, source.size()), source.data(), i) == Posted::kBusy) {
      ranks[1].progress();
    }
  }
  ranks[1].transport.reset();
  receiver.join();
  EXPECT_EQ(ranks[0].sink.count(Kind::kArrived), kSlices);
}

TEST_P(TcpData, NoticesThatThePeerOfAStalledSliceHasVanished) {
  ranks[0].sink.decide = [](Endpoint&, const SliceHeader&) {
    return Landing{Landing::How::kLater, nullptr};
  };
  const auto source = pattern(5000, 12);
  put(1, slice(0, source.size()), source, 0);
  ranks.progress_until([&] { return ranks[0].sink.question_count() > 0; });
  ranks[1].transport.reset();
  ranks.progress_until([&] { return ranks[0].sink.count(Kind::kDown) == 1; });
}

TEST_P(TcpData, WakesASleeperForEachMessage) {
  constexpr std::uint32_t kRounds = 2000;
  const auto source = pattern(70000, 13);
  std::vector<std::byte> targets[2] = {source, source};
  std::uint32_t arrived[2] = {};
  for (int rank : {0, 1}) {
    ranks[rank].sink.decide = [&targets, rank](Endpoint&, const SliceHeader&) {
      return Landing{Landing::How::kInto, targets[rank].data()};
    };
    ranks[rank].sink.react = [&, rank](const RecordingSink::Event& event) {
      if (event.kind == Kind::kArrived) ++arrived[rank];
    };
    ranks[rank].endpoints[1 - rank]->expect(rank == 0);  // one way with, one way without
  }
  const auto play = [&](int rank) {
    for (std::uint32_t i = 0; i < kRounds; ++i) {
      if (rank == 0) ranks[0].run_asleep([&] { return arrived[0] > i; });
      const std::size_t bytes = i % 5 == 0 ? source.size() : i % 100;
      const Posted posted = ranks[rank].endpoints[1 - rank]->put(slice(i, bytes), source.data(), i);
      ASSERT_NE(posted, Posted::kBusy);
      if (rank == 1) ranks[1].run_asleep([&] { return arrived[1] > i; });
    }
    // Rank 1 owes acknowledgements; before a pause they are sent.
    while (!ranks[rank].transport->prepare_sleep()) ranks[rank].progress();
    ranks[rank].transport->end_sleep(true);
    ranks[rank].run_asleep([&] { return ranks[rank].sink.count(Kind::kAcknowledged) >= kRounds; });
  };
  std::thread other(play, 0);
  play(1);
  other.join();
}

TEST_P(TcpData, DoesNotWakeASleeperForAStalledSlice) {
  bool is_entered = false;
  ranks[0].sink.decide = [&](Endpoint& from, const SliceHeader& header) {
    if (!is_entered) return Landing{Landing::How::kLater, nullptr};
    return landings(from, header);
  };
  const auto source = pattern(1 << 20, 14);
  put(1, slice(0, source.size()), source, 0);
  ranks.progress_until([&] { return ranks[0].sink.question_count() > 0; });
  // Twice, so that no event is left of what has been taken in already.
  for (int i = 0; i < 2; ++i) {
    while (!ranks[0].transport->prepare_sleep()) ranks[0].progress();
    if (i == 0) ranks[0].transport->end_sleep(true);
  }
  // More of the slice comes, and another one behind it.
  put(1, slice(1, 5000), source, 1);
  for (int i = 0; i < 1000; ++i) ranks[1].progress();
  pollfd waiting{ranks[0].transport->descriptor(), POLLIN, 0};
  if (GetParam() != 1) {
    // It came over another socket: that is looked into once.
    ranks[0].transport->end_sleep(true);
    while (!ranks[0].transport->prepare_sleep()) ranks[0].progress();
  }
  EXPECT_EQ(poll(&waiting, 1, 0), 0);
  ranks[0].transport->end_sleep(true);

  is_entered = true;
  progress_until_acknowledged(1, 2);
  EXPECT_EQ(landings[0], source);
  while (!ranks[0].transport->prepare_sleep()) ranks[0].progress();
  put(1, slice(2, 10), source, 2);
  EXPECT_EQ(poll(&waiting, 1, -1), 1);
  ranks[0].transport->end_sleep(true);
}

}  // namespace
}  // namespace polyrail::tcp_test
