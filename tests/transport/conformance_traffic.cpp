#include "tests/transport/conformance_traffic.hpp"

#include <algorithm>
#include <cstring>

namespace polyrail::testing {
namespace {

constexpr std::byte kScribble{0xdb};  // over sources that may change
constexpr std::byte kUntouched{0x5a};

}  // namespace

Traffic::Traffic(RankHarness& ranks, ConformanceCase::Guarantees guarantees, std::uint64_t seed)
    : ranks_(ranks), guarantees_(guarantees), random_(seed) {
  for (int rank = 0; rank < ranks_.rank_count(); ++rank) {
    ranks_[rank].sink.forget();
    ranks_[rank].sink.decide = [this, rank](Endpoint& from, const SliceHeader& header) {
      return decide(rank, from, header);
    };
    ranks_[rank].sink.react = [this, rank](const RecordingSink::Event& event) {
      react(rank, event);
    };
  }
}

Traffic::~Traffic() {
  for (int rank = 0; rank < ranks_.rank_count(); ++rank) {
    ranks_[rank].sink.decide = [](Endpoint&, const SliceHeader&) { return Landing(); };
    ranks_[rank].sink.react = [](const RecordingSink::Event&) {};
  }
}

Traffic::Buffer Traffic::make_buffer(std::size_t bytes, std::byte fill) {
  Buffer buffer;
  buffer.begin = Buffer::kGuardBytes + random_() % 64;
  buffer.memory.assign(buffer.begin + bytes + Buffer::kGuardBytes, fill);
  return buffer;
}

void Traffic::add(int from, int to, std::uint32_t bytes, Answer answer) {
  if (answer.how == Landing::How::kStream && !ranks_[to].transport->caps().can_stream) {
    answer.how = Landing::How::kInto;
  }
  Slice slice;
  slice.from = from;
  slice.to = to;
  slice.answer = answer;
  slice.later_left = answer.later_count;
  slice.header.operation = static_cast<std::uint32_t>(random_());
  slice.header.signal = static_cast<std::uint32_t>(slices_.size());
  slice.header.offset_bytes = random_();
  slice.header.bytes = bytes;
  slice.header.call_kind = static_cast<std::uint32_t>(random_());
  slice.header.call_count = random_();
  slice.source = make_buffer(bytes, kScribble);
  slice.target = make_buffer(bytes, kUntouched);
  slice.expected.resize(bytes);
  std::uint64_t word = random_();
  for (std::size_t at = 0; at < bytes; at += sizeof(word)) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(slice.expected.data() + at, &word, std::min(sizeof(word), bytes - at));
  }
  if (bytes > 0) std::memcpy(slice.source.data(), slice.expected.data(), bytes);
  queues_[{from, to}].push_back(slices_.size());
  slices_.push_back(std::move(slice));
}

bool Traffic::post() {
  bool has_posted = false;
  for (auto& [pair, queue] : queues_) {
    for (auto& next = posted_[pair]; next < queue.size(); ++next) {
      auto& slice = slices_[queue[next]];
      auto& endpoint = *ranks_[slice.from].endpoints[slice.to];
      const auto posted = endpoint.put(slice.header, slice.source.data(), slice.header.signal);
      if (posted == Posted::kBusy) break;
      if (slice.header.bytes <= ranks_[slice.from].transport->caps().buffered_bytes) {
        EXPECT_EQ(posted, Posted::kBuffered) << slice.header.bytes << " bytes";
      }
      if (posted == Posted::kBuffered) slice.source.fill(kScribble);
      slice.is_posted = true;
      stalling_count_[pair] += slice.answer.later_count > 0;
      slice.may_be_stalled = stalling_count_[pair] > 0;
      ++posted_count_;
      has_posted = true;
    }
  }
  return has_posted;
}

void Traffic::run() {
  ranks_.progress_until([&] {
    post();
    return acknowledged_count_ == slices_.size() || ::testing::Test::HasFatalFailure();
  });
  if (::testing::Test::HasFatalFailure()) return;
  for (; checked_count_ < slices_.size(); ++checked_count_) check_target(slices_[checked_count_]);
  if (guarantees_.in_order) {
    EXPECT_EQ(arrivals_, queues_);
  }
  ranks_.expect_no_breaches();
}

Landing Traffic::decide(int rank, Endpoint& from, const SliceHeader& header) {
  const Landing discard{Landing::How::kDiscard, nullptr};
  if (header.signal >= slices_.size()) {
    ADD_FAILURE() << "a slice that nobody sent";
    return discard;
  }
  auto& slice = slices_[header.signal];
  EXPECT_EQ(std::memcmp(&header, &slice.header, sizeof(header)), 0) << "the header has changed";
  EXPECT_EQ(slice.from, from.peer());
  EXPECT_EQ(slice.to, rank);
  EXPECT_TRUE(slice.is_posted);
  if (slice.arrived_count > 0) return discard;
  if (slice.later_left > 0) {
    --slice.later_left;
    return {Landing::How::kLater, nullptr};
  }
  return {slice.answer.how, slice.target.data()};
}

void Traffic::react(int rank, const RecordingSink::Event& event) {
  if (event.kind == RecordingSink::Kind::kDown) FAIL() << event.text;
  if (event.kind == RecordingSink::Kind::kArrived) {
    auto& slice = slices_[event.header.signal];
    if (++slice.arrived_count == 1) {
      arrivals_[{event.peer, rank}].push_back(event.header.signal);
    } else {
      EXPECT_FALSE(guarantees_.arrives_once) << "arrived " << slice.arrived_count << " times";
    }
  }
  if (event.kind == RecordingSink::Kind::kAcknowledged) {
    ASSERT_LT(event.cookie, slices_.size());
    auto& slice = slices_[event.cookie];
    EXPECT_EQ(slice.from, rank);
    EXPECT_EQ(slice.to, event.peer);
    EXPECT_GE(slice.arrived_count, 1) << "acknowledged before it arrived";
    EXPECT_EQ(++slice.acknowledged_count, 1);
    if (slice.answer.later_count > 0) {
      EXPECT_TRUE(event.was_stalled);
      --stalling_count_[{rank, event.peer}];
    } else if (guarantees_.in_order && !slice.may_be_stalled) {
      // An acknowledgement may speak for several slices; without any stall none can be told of one.
      const bool has_stall = std::ranges::any_of(slices_, [&](const auto& other) {
        return other.from == slice.from && other.to == slice.to && other.answer.later_count > 0;
      });
      if (!has_stall) {
        EXPECT_FALSE(event.was_stalled);
      }
    }
    ++acknowledged_count_;
    slice.source.fill(kScribble);
  }
}

void Traffic::check_target(Slice& slice) {
  const bool is_written = slice.answer.how != Landing::How::kDiscard;
  const std::size_t written_bytes = is_written ? slice.header.bytes : 0;
  if (written_bytes > 0) {
    ASSERT_EQ(std::memcmp(slice.target.data(), slice.expected.data(), written_bytes), 0)
        << slice.header.bytes << " bytes";
  }
  const auto is_touched = [](std::byte byte) { return byte != kUntouched; };
  const auto begin = slice.target.memory.begin();
  const auto payload = begin + static_cast<std::ptrdiff_t>(slice.target.begin);
  const auto rest = payload + static_cast<std::ptrdiff_t>(written_bytes);
  EXPECT_TRUE(std::none_of(begin, payload, is_touched) &&
              std::none_of(rest, slice.target.memory.end(), is_touched))
      << "bytes around the target were written";
  EXPECT_EQ(slice.acknowledged_count, 1);
  EXPECT_EQ(slice.later_left, 0);
}

}  // namespace polyrail::testing
