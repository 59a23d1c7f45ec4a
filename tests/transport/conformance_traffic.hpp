// Traffic: slices sent between the ranks of a harness, each checked on both ends: header, payload,
// bytes around the target, number and order of arrivals and acknowledgements, use of the source.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/rank_harness.hpp"
#include "tests/transport/conformance.hpp"

namespace polyrail::testing {

class Traffic {
 public:
  // How the receiver answers one slice: kLater so many times, then as it says.
  struct Answer {
    Landing::How how = Landing::How::kInto;
    int later_count = 0;
  };

  // Takes over the sinks of the harness, which must be up.
  Traffic(RankHarness& ranks, ConformanceCase::Guarantees guarantees, std::uint64_t seed);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Plans a slice of random bytes from one rank to another, source and target at any alignment.
  void add(int from, int to, std::uint32_t bytes, Answer answer);
  void add(int from, int to, std::uint32_t bytes) { add(from, to, bytes, Answer()); }
  // Posts what is planned as long as it is taken, in order for each pair. True if anything was.
  bool post();
  // Posts, makes progress and checks until everything is acknowledged. May be repeated.
  void run();

  std::size_t planned_count() const { return slices_.size(); }
  std::size_t posted_count() const { return posted_count_; }
  std::size_t acknowledged_count() const { return acknowledged_count_; }

 private:
  struct Buffer {
    static constexpr std::size_t kGuardBytes = 64;
    std::vector<std::byte> memory;  // guard, misalignment, payload, guard
    std::size_t begin = 0;
    std::byte* data() { return memory.data() + begin; }
    void fill(std::byte with) { std::memset(memory.data(), static_cast<int>(with), memory.size()); }
  };
  struct Slice {
    int from = -1;
    int to = -1;
    SliceHeader header;  // `signal` is the index of the slice
    Buffer source;
    Buffer target;
    std::vector<std::byte> expected;
    Answer answer;
    int later_left = 0;
    bool is_posted = false;
    bool may_be_stalled = false;  // it or one before it is answered kLater
    int arrived_count = 0;
    int acknowledged_count = 0;
  };
  Buffer make_buffer(std::size_t bytes, std::byte fill);
  Landing decide(int rank, Endpoint& from, const SliceHeader& header);
  void react(int rank, const RecordingSink::Event& event);
  void check_target(Slice& slice);

  RankHarness& ranks_;
  const ConformanceCase::Guarantees guarantees_;
  std::mt19937_64 random_;
  std::vector<Slice> slices_;
  std::map<std::pair<int, int>, std::vector<std::size_t>> queues_;  // planned, by (from, to)
  std::map<std::pair<int, int>, std::size_t> posted_;               // how many of a queue
  std::map<std::pair<int, int>, int> stalling_count_;  // posted, to be answered kLater, not over
  std::map<std::pair<int, int>, std::vector<std::size_t>> arrivals_;  // first arrivals
  std::size_t posted_count_ = 0;
  std::size_t checked_count_ = 0;
  std::size_t acknowledged_count_ = 0;
};

}  // namespace polyrail::testing
