// Conformance: slices and controls, driven by one thread.
#include <algorithm>
#include <random>

#include "tests/transport/conformance.hpp"
#include "tests/transport/conformance_traffic.hpp"

namespace polyrail::testing {
namespace {

using How = Landing::How;
using Kind = RecordingSink::Kind;

// A new seed for each run, printed if the test fails.
#define POLYRAIL_RANDOM_SEED(seed)          \
  const auto seed = std::random_device()(); \
  SCOPED_TRACE("seed " + std::to_string(seed))

TEST_P(TransportConformance, CarriesEverySize) {
  POLYRAIL_RANDOM_SEED(seed);
  RankHarness ranks(open(), 2);
  ranks.connect_until_up();
  const auto buffered = static_cast<std::uint32_t>(ranks[0].transport->caps().buffered_bytes);
  const auto best = static_cast<std::uint32_t>(ranks[0].transport->caps().best_slice_bytes);
  std::vector<std::uint32_t> sizes = {0,     1,        2,         3,
                                      7,     8,        63,        64,
                                      65,    buffered, 4096,      buffered + 1,
                                      65535, 65536,    65537,     best - 1,
                                      best,  best + 1, (4 << 20), (7 << 20) + 13};
  if (buffered > 0) sizes.push_back(buffered - 1);
  Traffic traffic(ranks, guarantees(), seed);
  for (const auto how : {How::kInto, How::kStream, How::kDiscard}) {
    for (const auto size : sizes) traffic.add(0, 1, size, {how, 0});
  }
  traffic.run();
}

TEST_P(TransportConformance, CarriesOneSliceAtATime) {
  POLYRAIL_RANDOM_SEED(seed);
  RankHarness ranks(open(), 2);
  ranks.connect_until_up();
  Traffic traffic(ranks, guarantees(), seed);
  for (std::uint32_t size = 0; size < 3000; size = size * 5 / 4 + 1) {
    traffic.add(0, 1, size);
    traffic.run();
    traffic.add(1, 0, size, {How::kStream, 0});
    traffic.run();
  }
}

TEST_P(TransportConformance, CarriesRandomTrafficBetweenAllRanks) {
  POLYRAIL_RANDOM_SEED(seed);
  std::mt19937_64 random(seed);
  RankHarness ranks(open(), 3);
  ranks.connect_until_up();
  Traffic traffic(ranks, guarantees(), seed);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 600; ++i) {
      const int from = static_cast<int>(random() % 3);
      const int to = (from + 1 + static_cast<int>(random() % 2)) % 3;
      const auto bits = random() % 18;
      const auto bytes = static_cast<std::uint32_t>(random() % (std::uint64_t{2} << bits));
      constexpr How kHows[] = {How::kInto, How::kInto, How::kStream, How::kDiscard};
      const int later_count = random() % 4 == 0 ? static_cast<int>(random() % 20) : 0;
      traffic.add(from, to, bytes, {kHows[random() % 4], later_count});
      ranks[to].endpoints[from]->expect(random() % 2 == 0);
    }
    traffic.run();
  }
}

TEST_P(TransportConformance, IsBusyWhenFullAndGoesOnAfterwards) {
  POLYRAIL_RANDOM_SEED(seed);
  // Of the bytes that the system's own buffers may hold, or of their number.
  constexpr std::size_t kMostBytes = 64 << 20;
  constexpr std::size_t kMostSlices = 300'000;
  for (const std::uint32_t bytes : {1u, 300u, 64u << 10}) {
    RankHarness ranks(open(), 2);
    ranks.connect_until_up();
    Traffic traffic(ranks, guarantees(), seed);
    // Only the sender makes progress until it has been busy for many rounds.
    int busy_count = 0;
    while (busy_count < 100) {
      ASSERT_LT(traffic.planned_count() * bytes, kMostBytes) << "is never busy";
      ASSERT_LT(traffic.planned_count(), kMostSlices) << "is never busy";
      if (traffic.planned_count() == traffic.posted_count()) traffic.add(0, 1, bytes);
      busy_count = traffic.post() ? 0 : busy_count + 1;
      if (busy_count > 0) ranks[0].progress();
    }
    EXPECT_EQ(traffic.acknowledged_count(), 0u);
    for (int i = 0; i < 100; ++i) traffic.add(0, 1, bytes);
    traffic.run();
  }
}

TEST_P(TransportConformance, KeepsASliceUntilItIsExpected) {
  POLYRAIL_RANDOM_SEED(seed);
  RankHarness ranks(open(), 2);
  ranks.connect_until_up();
  const auto buffered = static_cast<std::uint32_t>(ranks[0].transport->caps().buffered_bytes);
  Traffic traffic(ranks, guarantees(), seed);
  for (const std::uint32_t bytes : {0u, 1u, buffered, buffered + 1, 100'000u, 3u << 20}) {
    for (const auto how : {How::kInto, How::kStream, How::kDiscard}) {
      traffic.add(0, 1, bytes, {how, 200});
      traffic.add(0, 1, 17);
      traffic.add(0, 1, 100'000);
      traffic.add(1, 0, bytes);
      traffic.run();
    }
  }
}

TEST_P(TransportConformance, AsksOnceAProgressWhetherASliceIsExpected) {
  RankHarness ranks(open(), 2);
  ranks.connect_until_up();
  ranks[1].sink.decide = [](Endpoint&, const SliceHeader&) { return Landing(); };
  ASSERT_NE(ranks[0].endpoints[1]->put(SliceHeader(), nullptr, 1), Posted::kBusy);
  ASSERT_EQ(ranks[0].endpoints[1]->send_control({}), Posted::kBuffered);
  ranks.progress_until([&] { return ranks[1].sink.question_count() > 0; });
  for (int i = 0; i < 100; ++i) {
    const auto before = ranks[1].sink.question_count();
    ranks.progress();
    EXPECT_LE(ranks[1].sink.question_count(), before + 1);
  }
  EXPECT_GT(ranks[1].sink.question_count(), 1u);
  if (guarantees().in_order) {
    EXPECT_EQ(ranks[1].sink.count(Kind::kControl), 0u);
  }
  EXPECT_EQ(ranks[0].sink.count(Kind::kAcknowledged), 0u);
  ranks.expect_no_breaches();
}

TEST_P(TransportConformance, KeepsControlsInOrderAmongSlices) {
  POLYRAIL_RANDOM_SEED(seed);
  std::mt19937 random(seed);
  RankHarness ranks(open(), 2);
  ranks.connect_until_up();
  // Everything sent is numbered: a slice by its signal, a control by its first bytes.
  constexpr std::uint32_t kCount = 2000;
  std::vector<std::uint32_t> heard;
  std::vector<bool> is_heard(kCount);
  std::size_t run_begin = 0;  // of the slices since the last control
  const auto hear = [&](std::uint32_t number, bool is_control) {
    ASSERT_LT(number, kCount);
    if (is_heard[number]) {
      EXPECT_FALSE(is_control || guarantees().arrives_once) << number << " came twice";
      return;
    }
    is_heard[number] = true;
    heard.push_back(number);
    if (!is_control) return;
    // Whatever happens to the order of slices, none passes a control.
    if (!guarantees().in_order)
      std::sort(heard.begin() + static_cast<std::ptrdiff_t>(run_begin), heard.end() - 1);
    run_begin = heard.size();
  };
  std::vector<std::byte> target(70'000);
  std::vector<std::byte> source(target.size(), std::byte{1});
  ranks[1].sink.decide = [&](Endpoint&, const SliceHeader&) {
    return Landing{How::kInto, target.data()};
  };
  ranks[1].sink.react = [&](const RecordingSink::Event& event) {
    if (event.kind == Kind::kArrived) hear(event.header.signal, false);
    if (event.kind != Kind::kControl) return;
    ASSERT_GE(event.text.size(), sizeof(std::uint32_t));
    std::uint32_t number = 0;
    event.text.copy(reinterpret_cast<char*>(&number), sizeof(number));
    hear(number, true);
    const auto fill = static_cast<char>(number);
    EXPECT_EQ(event.text.find_first_not_of(fill, sizeof(number)), std::string::npos);
  };
  std::vector<std::uint32_t> sent;
  for (std::uint32_t number = 0; number < kCount; ++number) {
    auto& endpoint = *ranks[0].endpoints[1];
    const bool is_slice = random() % 2 == 0;
    const bool is_small = random() % 4 != 0;
    SliceHeader header;
    header.signal = number;
    header.bytes = static_cast<std::uint32_t>(random() % (is_small ? 300 : source.size()));
    std::string message(sizeof(number) + random() % (is_small ? 300 : 4093),
                        static_cast<char>(number));
    message.replace(0, sizeof(number), reinterpret_cast<const char*>(&number), sizeof(number));
    const auto post = [&] {
      return is_slice ? endpoint.put(header, source.data(), number)
                      : endpoint.send_control(std::as_bytes(std::span(message)));
    };
    auto posted = post();
    for (; posted == Posted::kBusy; posted = post()) ranks.progress();
    if (!is_slice) {
      EXPECT_EQ(posted, Posted::kBuffered);
    }
    sent.push_back(number);
  }
  ranks.progress_until([&] { return heard.size() >= kCount; });
  if (!guarantees().in_order)
    std::sort(heard.begin() + static_cast<std::ptrdiff_t>(run_begin), heard.end());
  EXPECT_EQ(heard, sent);
  ranks.expect_no_breaches();
}

TEST_P(TransportConformance, CarriesControlsOfEverySize) {
  RankHarness ranks(open(), 2);
  ranks.connect_until_up();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{257},
        Endpoint::kMaxControlBytes - 1, Endpoint::kMaxControlBytes}) {
    std::string message(size, '\0');
    for (std::size_t i = 0; i < size; ++i) message[i] = static_cast<char>(i * 11);
    ranks[0].sink.forget();
    ASSERT_EQ(ranks[1].endpoints[0]->send_control(std::as_bytes(std::span(message))),
              Posted::kBuffered);
    ranks.progress_until([&] { return ranks[0].sink.count(Kind::kControl) == 1; });
    EXPECT_EQ(ranks[0].sink.events(Kind::kControl).front().text, message);
  }
  ranks.expect_no_breaches();
}

TEST_P(TransportConformance, TakesPutsFromWithinItsCalls) {
  RankHarness ranks(open(), 2);
  ranks.connect_until_up();
  // Each rank answers an arrival with a slice and each acknowledgement with a control.
  constexpr std::size_t kCount = 500;
  std::vector<std::byte> source(100'000), target(source.size());
  std::vector<std::size_t> wanted(2, 0);  // slices to send
  std::vector<std::size_t> sent(2, 0);
  const auto send = [&](int rank) {
    auto& endpoint = *ranks[rank].endpoints[1 - rank];
    SliceHeader header;
    while (sent[rank] < wanted[rank]) {
      header.bytes = static_cast<std::uint32_t>(sent[rank] % 3 == 0 ? source.size() : 16);
      header.signal = static_cast<std::uint32_t>(sent[rank]);
      if (endpoint.put(header, source.data(), sent[rank]) == Posted::kBusy) return;
      ++sent[rank];
    }
  };
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank].sink.decide = [&](Endpoint&, const SliceHeader&) {
      return Landing{How::kInto, target.data()};
    };
    ranks[rank].sink.react = [&, rank](const RecordingSink::Event& event) {
      if (event.kind == Kind::kAcknowledged) {
        (void)ranks[rank].endpoints[1 - rank]->send_control(std::as_bytes(std::span("ok")));
      }
      if (event.kind == Kind::kArrived && wanted[rank] < kCount) ++wanted[rank];
      send(rank);
    };
  }
  wanted[0] = 1;
  ranks.progress_until([&] {
    send(0);
    send(1);
    return ranks[0].sink.count(Kind::kAcknowledged) == kCount &&
           ranks[1].sink.count(Kind::kAcknowledged) == kCount;
  });
  ranks.expect_no_breaches();
}

TEST_P(TransportConformance, CarriesRegisteredMemory) {
  RankHarness ranks(open(), 2);
  ranks.connect_until_up();
  std::vector<std::byte> source(1 << 20, std::byte{3}), target(source.size());
  auto source_region = ranks[0].transport->register_memory(source);
  auto target_region = ranks[1].transport->register_memory(target);
  ASSERT_TRUE(source_region.is_ok()) << source_region.status().message();
  ASSERT_TRUE(target_region.is_ok()) << target_region.status().message();
  ranks[1].sink.decide = [&](Endpoint&, const SliceHeader&) {
    return Landing{How::kInto, target.data()};
  };
  SliceHeader header;
  header.bytes = static_cast<std::uint32_t>(source.size());
  ASSERT_NE(ranks[0].endpoints[1]->put(header, source.data(), 1), Posted::kBusy);
  ranks.progress_until([&] { return ranks[0].sink.count(Kind::kAcknowledged) == 1; });
  EXPECT_EQ(target, source);
  ranks.expect_no_breaches();
}

}  // namespace
}  // namespace polyrail::testing
