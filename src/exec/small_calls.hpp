// SmallCalls: collectives of a few bytes between the ranks of one host. Each rank writes its input
// once where all others read it and makes its output of what all have written, in rank order: one
// trip of a cache line instead of the entries and acknowledgements of slices.
//
// A rank waits only for those whose input it needs: a root that only gives is done at once. What
// the others took the call for it sees before its next one.
//
// Belongs to the engine's thread. Allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/exec/arithmetic.hpp"
#include "src/exec/bound_plan.hpp"
#include "transports/transport.hpp"

namespace polyrail {

class SmallCalls {
 public:
  // What a call is for its peers: they must agree on it.
  struct Call {
    std::uint32_t number = 0;  // of the operation
    std::uint32_t kind = 0;    // as in a slice's header
    std::uint64_t count = 0;
    friend bool operator==(const Call&, const Call&) = default;
  };
  struct Difference {
    int peer = -1;
    Call call;
  };

  // `exchange` joins all ranks, and outlives this.
  SmallCalls(SmallExchange& exchange, int rank, int rank_count)
      : exchange_(exchange), rank_(rank), rank_count_(rank_count) {}

  // Whether a call goes this way; the same on all ranks.
  bool takes(const BoundPlan& plan) const {
    return rank_count_ <= kMostRanks && !plan.is_uneven_exchange && !plan.spec.wire_type &&
           plan.most_input_bytes <= kMostBytes &&
           plan.most_input_bytes * static_cast<std::uint64_t>(rank_count_) <= kMostBytesOfAll;
  }
  // Begins; the last one must be over. The input is copied, the plan borrowed until the end.
  void begin(const BoundPlan& plan, const Call& call, const Arithmetic& arithmetic,
             const std::byte* input);
  bool is_running() const { return is_running_; }
  // Looks whether all that is needed has been written; if so writes the output and ends.
  bool try_finish(std::byte* output);
  // A peer that has written for another call than the one that runs, or, if none does, for the
  // operation `number`, which it takes for a small one.
  std::optional<Difference> difference(std::uint32_t number) const;
  // Whether all peers have entered the last call, and the same one.
  bool is_taken() const { return exchange_.can_post() && !last_difference(); }
  // Who has not written yet, as text for a deadline's report.
  std::string missing() const;
  // Gives up; nothing can begin any more.
  void stop() { is_running_ = false; }

 private:
  static constexpr int kMostRanks = 64;
  static constexpr std::size_t kMostBytes = 2000;
  static constexpr std::size_t kMostBytesOfAll = 8192;  // each rank reads them all

  bool try_post();
  // A peer that took the last call, which is over here, for something else.
  std::optional<Difference> last_difference() const;
  static Call call_of(const std::byte* message);

  SmallExchange& exchange_;
  const int rank_;
  const int rank_count_;
  bool is_running_ = false;
  const BoundPlan* plan_ = nullptr;
  Arithmetic arithmetic_;
  Call call_;
  std::optional<Call> last_call_;
  bool is_posted_ = false;
  std::size_t message_bytes_ = 0;
  int seen_ = 0;  // of ranks below this all that is needed has been written
  std::array<bool, kMostRanks> is_needed_{};     // by rank
  std::array<bool, kMostRanks> is_last_seen_{};  // by rank: was needed in the last call
  std::array<const void*, kMostRanks> sources_{};
  alignas(64) std::array<std::byte, sizeof(Call) + kMostBytes> message_;
};

}  // namespace polyrail
