// Conformance: what happens when a transport ends while its peers go on.
#include <algorithm>
#include <memory>
#include <thread>

#include "tests/transport/conformance.hpp"

namespace polyrail::testing {
namespace {

using Kind = RecordingSink::Kind;

// Ends rank 1 of three, with so many large slices under way to and from it that are kept waiting.
void end_one_side(const OpenTransport& open, int unfinished_count) {
  RankHarness ranks(open, 3);
  ranks.connect_until_up();
  std::vector<std::byte> memory(1 << 20);
  for (int i = 0; i < unfinished_count; ++i) {
    SliceHeader header;
    header.bytes = static_cast<std::uint32_t>(memory.size());
    (void)ranks[0].endpoints[1]->put(header, memory.data(), 1);
    (void)ranks[1].endpoints[0]->put(header, memory.data(), 2);
  }
  for (int rank = 0; rank < 3; ++rank) {
    ranks[rank].sink.decide = [](Endpoint&, const SliceHeader&) { return Landing(); };
  }
  ranks.progress();
  ranks[1].transport.reset();
  ranks.progress_until([&] {
    return ranks[0].sink.count(Kind::kDown) == 1 && ranks[2].sink.count(Kind::kDown) == 1;
  });
  EXPECT_EQ(ranks[0].sink.events(Kind::kDown).front().peer, 1);
  EXPECT_EQ(ranks[0].endpoints[1]->put(SliceHeader(), nullptr, 3), Posted::kBusy);
  EXPECT_EQ(ranks[0].endpoints[1]->send_control({}), Posted::kBusy);
  EXPECT_EQ(ranks[0].endpoints[2]->state(), EndpointState::kUp);
  ranks.expect_no_breaches();
}

TEST_P(TransportConformance, TellsThePeerWhenOneSideEnds) {
  end_one_side(open(), 0);
}

TEST_P(TransportConformance, TellsAPeerThatKeepsSlicesWaitingWhenOneSideEnds) {
  end_one_side(open(), 3);
}

TEST_P(TransportConformance, TellsThePeerWhenOneSideEndsBeforeItIsUp) {
  TransportContext context;
  context.connect_timeout_ms = 300;
  RankHarness ranks(open(), 2, context);
  ranks.connect();
  ranks[1].transport.reset();
  ranks[0].run_asleep([&] { return ranks[0].sink.count(Kind::kDown) == 1; });
  ranks.expect_no_breaches();
}

TEST_P(TransportConformance, WakesWhenThePeerEnds) {
  RankHarness ranks(open(), 2);
  ranks.connect_until_up();
  std::thread survivor(
      [&] { ranks[0].run_asleep([&] { return ranks[0].sink.count(Kind::kDown) == 1; }); });
  ranks[1].transport.reset();
  survivor.join();
  ranks.expect_no_breaches();
}

// A peer that is given up gets nothing else than what it was sent, though its memory is gone.
TEST_P(TransportConformance, ReadsNoSourceAfterThePeerIsAbandoned) {
  constexpr std::uint32_t kBytes = 1 << 20;
  for (int progress_count = 0; progress_count < 6; ++progress_count) {
    RankHarness ranks(open(), 3);
    ranks.connect_until_up();
    auto source = std::make_unique<std::vector<std::byte>>(kBytes, std::byte{1});
    std::vector<std::byte> target(kBytes);
    bool is_entered = progress_count % 2 == 1;
    ranks[1].sink.decide = [&](Endpoint&, const SliceHeader&) {
      return is_entered ? Landing{Landing::How::kInto, target.data()} : Landing();
    };
    ranks[1].sink.react = [&](const RecordingSink::Event& event) {
      if (event.kind != Kind::kArrived || event.peer != 0) return;
      EXPECT_EQ(std::ranges::count(target, std::byte{1}), kBytes);
    };
    SliceHeader header;
    header.bytes = kBytes;
    for (header.signal = 0; header.signal < 3; ++header.signal) {
      (void)ranks[0].endpoints[1]->put(header, source->data(), header.signal);
    }
    for (int i = 0; i < progress_count; ++i) ranks.progress();
    ranks[0].endpoints[1]->abandon();
    EXPECT_EQ(ranks[0].endpoints[1]->state(), EndpointState::kDown);
    EXPECT_EQ(ranks[0].endpoints[1]->put(header, nullptr, 9), Posted::kBusy);
    source.reset();
    is_entered = true;
    ranks.progress_until([&] { return ranks[1].sink.count(Kind::kDown) == 1; });
    EXPECT_EQ(ranks[0].sink.count(Kind::kDown), 0U);
    EXPECT_EQ(ranks[0].endpoints[2]->state(), EndpointState::kUp);
    ranks.expect_no_breaches();
  }
}

// What arrives in full after the sender has ended is what it sent, though its memory is gone.
TEST_P(TransportConformance, DeliversNothingElseWhenTheSenderEnds) {
  constexpr std::uint32_t kBytes = 1 << 20;
  for (int progress_count = 0; progress_count < 6; ++progress_count) {
    RankHarness ranks(open(), 2);
    ranks.connect_until_up();
    std::vector<std::byte> source(kBytes, std::byte{1});
    std::vector<std::byte> targets[4];
    for (auto& target : targets) target.resize(kBytes);
    ranks[1].sink.decide = [&](Endpoint&, const SliceHeader& header) {
      return Landing{Landing::How::kInto, targets[header.signal].data()};
    };
    ranks[1].sink.react = [&](const RecordingSink::Event& event) {
      if (event.kind != Kind::kArrived) return;
      EXPECT_EQ(std::ranges::count(targets[event.header.signal], std::byte{1}), kBytes);
    };
    SliceHeader header;
    header.bytes = kBytes;
    for (header.signal = 0; header.signal < 4; ++header.signal) {
      (void)ranks[0].endpoints[1]->put(header, source.data(), header.signal);
    }
    for (int i = 0; i < progress_count; ++i) ranks.progress();
    ranks[0].transport.reset();
    std::ranges::fill(source, std::byte{2});
    ranks.progress_until([&] { return ranks[1].sink.count(Kind::kDown) == 1; });
    ranks.expect_no_breaches();
  }
}

TEST_P(TransportConformance, WritesNoTargetAfterTheEndpointIsDown) {
  constexpr std::uint32_t kBytes = 1 << 20;
  for (int progress_count = 0; progress_count < 6; ++progress_count) {
    RankHarness ranks(open(), 2);
    ranks.connect_until_up();
    const std::vector<std::byte> source(kBytes, std::byte{1});
    std::vector<std::byte> target(kBytes);
    ranks[1].sink.decide = [&](Endpoint&, const SliceHeader&) {
      return Landing{Landing::How::kInto, target.data()};
    };
    SliceHeader header;
    header.bytes = kBytes;
    for (int i = 0; i < 4; ++i) (void)ranks[0].endpoints[1]->put(header, source.data(), 1);
    for (int i = 0; i < progress_count; ++i) ranks.progress();
    ranks[0].transport.reset();
    ranks.progress_until([&] { return ranks[1].sink.count(Kind::kDown) == 1; });
    std::ranges::fill(target, std::byte{7});
    for (int i = 0; i < 100; ++i) ranks.progress();
    EXPECT_EQ(std::ranges::count(target, std::byte{7}), kBytes);
    ranks.expect_no_breaches();
  }
}

TEST_P(TransportConformance, LeavesNeitherDescriptorsNorThreadsBehind) {
  const auto use = [&] {
    TransportContext context;
    context.connect_timeout_ms = 50;
    RankHarness ranks(open(), 3, context);
    ranks.connect_until_up();
    RankHarness unfinished(open(), 2);
    unfinished.connect();
    RankHarness failed(open(), 2, context);
    ASSERT_TRUE(failed[0].transport->connect(1, failed[1].transport->address()).is_ok());
    failed.progress_until([&] { return failed[0].sink.count(Kind::kDown) == 1; });
  };
  use();  // what is opened once per process is open now
  const auto descriptor_count = count_own("fd");
  const auto thread_count = count_own("task");
  use();
  EXPECT_EQ(count_own("fd"), descriptor_count);
  EXPECT_EQ(count_own("task"), thread_count);
}

}  // namespace
}  // namespace polyrail::testing
