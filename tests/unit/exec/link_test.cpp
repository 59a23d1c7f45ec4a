// The link: slices cover each put exactly once, and rails share the bytes by their rates.
#include "src/exec/link.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <vector>

#include "src/exec/intervals.hpp"

namespace polyrail {
namespace {

// A rail that keeps what it is given until the test acknowledges it.
class FakeEndpoint final : public Endpoint {
 public:
  explicit FakeEndpoint(int peer) : Endpoint(peer) {}
  EndpointState state() const override { return state_; }
  Posted put(const SliceHeader& header, const std::byte*, std::uint64_t cookie) override {
    if (slices.size() >= slots) return Posted::kBusy;
    slices.push_back({header, cookie});
    sent_bytes += header.bytes;
    return header.bytes <= buffered_bytes ? Posted::kBuffered : Posted::kPosted;
  }
  void abandon() override { state_ = EndpointState::kDown; }
  Posted send_control(std::span<const std::byte>) override { return Posted::kBuffered; }

  struct Sent {
    SliceHeader header;
    std::uint64_t cookie;
  };
  std::deque<Sent> slices;
  std::uint64_t sent_bytes = 0;
  std::size_t slots = 64;
  std::size_t buffered_bytes = 0;
  EndpointState state_ = EndpointState::kUp;
};

class Counting final : public Link::Listener {
 public:
  void on_put_progress(std::uint32_t put, std::uint64_t, std::uint64_t bytes) override {
    done[put] += bytes;
  }
  std::map<std::uint32_t, std::uint64_t> done;
};

struct Bench {
  explicit Bench(std::vector<double> bytes_per_s)
      : link(1, static_cast<int>(bytes_per_s.size()), counting) {
    for (std::size_t plane = 0; plane < bytes_per_s.size(); ++plane) {
      rails.push_back(std::make_unique<FakeEndpoint>(1));
      link.add_rail(static_cast<int>(plane), rails.back().get(), RailCaps{}, 10,
                    bytes_per_s[plane]);
    }
    link.reserve(64);
  }
  Put put(std::uint32_t number, std::uint64_t bytes) {
    Put value;
    value.header.operation = 1;
    value.header.signal = number;
    value.source = reinterpret_cast<const std::byte*>(this);
    value.bytes = bytes;
    value.put = number;
    return value;
  }
  // Each rail delivers at its rate. Returns the end, us. `heard_at_us`: from the rail and when a
  // slice landed.
  double run(
      const std::vector<double>& rates, double now = 0,
      const std::function<double(std::size_t, double)>& heard_at_us = [](std::size_t, double at) {
        return at;
      }) {
    struct Heard {
      double at_us;
      std::size_t rail;
      Acknowledgement done;
      bool operator>(const Heard& other) const {
        return std::pair(at_us, done.landed_us) > std::pair(other.at_us, other.done.landed_us);
      }
    };
    std::priority_queue<Heard, std::vector<Heard>, std::greater<>> heard;
    std::vector<double> free_at(rails.size(), now);
    link.pump(now);
    for (;;) {
      std::size_t next = rails.size();
      double soonest = 1e300;
      for (std::size_t i = 0; i < rails.size(); ++i) {
        if (rails[i]->slices.empty()) continue;
        const double at = free_at[i] + rails[i]->slices.front().header.bytes / (rates[i] * 1e-6);
        if (at < soonest) {
          soonest = at;
          next = i;
        }
      }
      if (next == rails.size() && heard.empty()) return now;
      if (next == rails.size() || (!heard.empty() && heard.top().at_us <= soonest)) {
        now = std::max(now, heard.top().at_us);
        link.on_acknowledged(*rails[heard.top().rail], heard.top().done);
        heard.pop();
        link.pump(now);
        continue;
      }
      now = std::max(now, soonest);
      free_at[next] = now;
      const auto slice = rails[next]->slices.front();
      rails[next]->slices.pop_front();
      landed[slice.header.signal].push_back(slice.header);
      heard.push({heard_at_us(next, now), next, {.cookie = slice.cookie, .landed_us = now}});
    }
  }
  void expect_whole(std::uint32_t put_number, std::uint64_t bytes) {
    IntervalSet set;
    std::uint64_t total = 0;
    for (const SliceHeader& header : landed[put_number]) {
      set.add(header.offset_bytes, header.offset_bytes + header.bytes,
              [](std::uint64_t, std::uint64_t) {});
      total += header.bytes;
    }
    EXPECT_EQ(set.covered_bytes(), bytes);
    EXPECT_EQ(total, bytes) << "a byte was sent twice";
    EXPECT_EQ(counting.done[put_number], bytes);
  }

  Counting counting;
  Link link;
  std::vector<std::unique_ptr<FakeEndpoint>> rails;
  std::map<std::uint32_t, std::vector<SliceHeader>> landed;
};

TEST(Link, SendsEveryByteOnceWhateverTheSize) {
  for (std::uint64_t bytes : {0ull, 1ull, 63ull, 64ull, 65ull, 8192ull, 100001ull, 16777217ull}) {
    Bench bench({125e6, 30e6, 300e6});
    bench.link.post(bench.put(7, bytes), 0);
    bench.run({125e6, 30e6, 300e6});
    bench.expect_whole(7, bytes);
    EXPECT_EQ(bench.landed[7].size(), bytes == 0 ? 1u : bench.landed[7].size());
    EXPECT_FALSE(bench.link.has_work());
    EXPECT_EQ(bench.link.outstanding_count(), 0u);
  }
}

// The tail of an odd size cannot be cut at a multiple of 64.
TEST(Link, MovesAPieceOfOddSizeAsAWhole) {
  for (std::uint64_t bytes : {100012u, 250003u, 500006u, 1000012u}) {
    Bench bench({1e9, 1e9});
    // A rail with a full window, and all of a later put queued behind it.
    bench.link.post(bench.put(1, 12'000'000), 0);
    bench.link.pump(0);
    bench.link.post(bench.put(2, bytes), 0);
    bench.run({1e9, 1e9});
    bench.expect_whole(1, 12'000'000);
    bench.expect_whole(2, bytes);
  }
  Bench bench({1e9, 20e6});
  for (std::uint32_t put = 0; put < 50; ++put) bench.link.post(bench.put(put, 20'012 + put), 1);
  bench.run({1e9, 20e6});
  for (std::uint32_t put = 0; put < 50; ++put) bench.expect_whole(put, 20'012 + put);
}

TEST(Link, ReportsCopiedBytesThatDieWithTheirRail) {
  Bench bench({100e6, 100e6});
  for (auto& rail : bench.rails) rail->buffered_bytes = 1000;
  bench.link.post(bench.put(1, 500), 1);
  bench.link.pump(0);
  bench.rails[1]->state_ = EndpointState::kDown;
  const Status lost = bench.link.on_down(*bench.rails[1], {StatusCode::kRemoteError, "cut"});
  EXPECT_EQ(lost.code(), StatusCode::kRemoteError) << "the peer may never get them";
}

TEST(Link, AbandonsTheRailsThatStillReadSources) {
  Bench bench({100e6, 100e6});
  bench.link.post(bench.put(1, 100'000), 0);
  bench.link.set_rebalancing(false);
  bench.link.pump(0);
  EXPECT_GT(bench.link.posted_count(), 0u);
  bench.link.abandon_posted();
  EXPECT_EQ(bench.link.posted_count(), 0u);
  EXPECT_EQ(bench.rails[0]->state(), EndpointState::kDown);
  EXPECT_EQ(bench.rails[1]->state(), EndpointState::kUp);
}

TEST(Link, SharesABigPutByTheRates) {
  const std::vector<double> rates = {125e6, 31e6, 312e6};
  Bench bench(rates);
  const std::uint64_t bytes = 64 << 20;
  bench.link.post(bench.put(0, bytes), 1);  // the plan is quite wrong: all on the slowest
  const double end = bench.run(rates);
  bench.expect_whole(0, bytes);
  const double ideal = bytes / (std::accumulate(rates.begin(), rates.end(), 0.0) * 1e-6);
  EXPECT_LT(end, ideal * 1.02);
}

TEST(Link, KeepsASmallPutOnThePlannedRail) {
  Bench bench({100e6, 1000e6});
  bench.link.post(bench.put(0, 4096), 0);
  bench.link.pump(0);
  EXPECT_EQ(bench.rails[0]->sent_bytes, 4096u);
  EXPECT_EQ(bench.rails[1]->sent_bytes, 0u);
}

TEST(Link, LeavesAGoodPlanAlone) {
  Bench bench({100e6, 100e6});
  bench.link.post(bench.put(0, 1 << 20), 0);
  bench.link.post(bench.put(1, 1 << 20), 1);
  bench.run({100e6, 100e6});
  EXPECT_EQ(bench.rails[0]->sent_bytes, 1u << 20);
  EXPECT_EQ(bench.rails[1]->sent_bytes, 1u << 20);
}

TEST(Link, TakesOverFromARailThatFallsToATenth) {
  Bench bench({125e6, 125e6});
  bench.link.post(bench.put(0, 8 << 20), 0);
  bench.link.post(bench.put(1, 8 << 20), 1);
  const double end = bench.run({125e6, 12.5e6});  // half the bytes were planned for the slow one
  bench.expect_whole(0, 8 << 20);
  bench.expect_whole(1, 8 << 20);
  const double ideal = (16 << 20) / (137.5);
  EXPECT_LT(end, ideal * 1.3 + 50e3);
  EXPECT_NEAR(bench.link.rail_state(1).bytes_per_s, 12.5e6, 4e6);
}

// Acknowledgements wait behind what the peer sends, at most until it has sent all.
TEST(Link, LeavesAFittingSplitAloneHoweverLateAcknowledgementsCome) {
  const std::vector<double> rates = {100e6, 50e6};
  const std::vector<double> periods_us = {1000, 6000};
  Bench bench(rates);
  double now = 0;
  for (std::uint32_t call = 0; call < 10; ++call) {
    const std::uint64_t before = bench.rails[1]->sent_bytes;
    bench.link.post(bench.put(2 * call, 1'400'000), 0);
    bench.link.post(bench.put(2 * call + 1, 700'000), 1);
    const double begin = now;
    now = bench.run(rates, begin, [&](std::size_t rail, double landed_us) {
      const double periods = std::ceil((landed_us - begin) / periods_us[rail]);
      return std::max(landed_us, begin + std::min(periods * periods_us[rail], 13500.0));
    });
    // The first call has to find out how late they come.
    if (call > 0) {
      EXPECT_NEAR(static_cast<double>(bench.rails[1]->sent_bytes - before), 700e3, 10e3);
      EXPECT_NEAR(now - begin, 14000, 200);
    }
    now += 100;
  }
}

TEST(Link, BelievesARiseOnlySlowly) {
  Bench bench({10e6});
  bench.link.post(bench.put(0, 1 << 20), 0);
  bench.run({1000e6});
  EXPECT_LT(bench.link.rail_state(0).bytes_per_s, 12e6);
}

TEST(Link, MovesUndeliveredBytesFromADeadRail) {
  Bench bench({125e6, 125e6});
  bench.link.post(bench.put(0, 4 << 20), 0);
  bench.link.pump(0);
  ASSERT_FALSE(bench.rails[0]->slices.empty());
  bench.rails[0]->state_ = EndpointState::kDown;
  bench.rails[0]->slices.clear();
  EXPECT_TRUE(bench.link.on_down(*bench.rails[0], Status(StatusCode::kRemoteError, "cut")).is_ok());
  bench.run({125e6, 125e6});
  bench.expect_whole(0, 4 << 20);
}

TEST(Link, FailsWhenTheLastRailDiesWithBytesUnderWay) {
  Bench bench({125e6});
  bench.link.post(bench.put(0, 4 << 20), 0);
  bench.link.pump(0);
  bench.rails[0]->state_ = EndpointState::kDown;
  EXPECT_FALSE(
      bench.link.on_down(*bench.rails[0], Status(StatusCode::kRemoteError, "cut")).is_ok());
}

TEST(Link, IgnoresLateAcknowledgementsOfStartUp) {
  Bench bench({125e6});
  bench.link.on_acknowledged(*bench.rails[0], {.cookie = kStartUpCookie | 5});
  EXPECT_EQ(bench.link.outstanding_count(), 0u);
}

TEST(IntervalSet, ReportsOnlyBytesThatAreNew) {
  IntervalSet set;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> fresh;
  const auto note = [&](std::uint64_t from, std::uint64_t to) { fresh.emplace_back(from, to); };
  set.add(10, 20, note);
  set.add(30, 40, note);
  set.add(15, 35, note);
  set.add(0, 50, note);
  set.add(5, 45, note);
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> want = {
      {10, 20}, {30, 40}, {20, 30}, {0, 10}, {40, 50}};
  EXPECT_EQ(fresh, want);
  EXPECT_EQ(set.covered_bytes(), 50u);
  EXPECT_TRUE(set.contains(0, 50));
  EXPECT_FALSE(set.contains(0, 51));
}

}  // namespace
}  // namespace polyrail
