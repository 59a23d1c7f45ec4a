// all_to_all, gather, scatter: each pair of ranks moves its own bytes, straight from one to the
// other.
//
// A rank may know only what it sends and receives itself (the uneven forms), so nothing in its
// schedule may depend on more: signals are counted as if every pair moved something over every
// strand, and the split of a pair's bytes depends on nothing but their number.

#include <array>

#include "src/plan/generators.hpp"
#include "src/plan/layout.hpp"

namespace polyrail {
namespace {

// Moves of so many bytes are paced: known at both ends, whatever else they know. Shorter ones fit
// into the buffers on their way; longer ones share the rails well enough by themselves, and lose
// more by waiting for one another.
constexpr std::uint64_t kLeastPacedBytes = 32 * 1024;
constexpr std::uint64_t kMostPacedBytes = 256 * 1024;

struct Move {
  Range source;  // of the sender's input
  Range target;  // of the receiver's output
};

Move move_of(const CollectiveSpec& spec, const Layout& layout, int from, int to) {
  switch (spec.collective) {
    case Collective::kGather:
      if (to != spec.root) return {};
      return {{0, layout.part(from).bytes}, layout.part(from)};
    case Collective::kScatter:
      if (from != spec.root) return {};
      return {layout.part(to), {0, layout.part(to).bytes}};
    default:
      return {layout.sent(from, to), layout.received(from, to)};
  }
}

// Whether the two exchange anything in this collective.
bool is_pair(const CollectiveSpec& spec, int from, int to) {
  if (spec.collective == Collective::kGather) return to == spec.root;
  if (spec.collective == Collective::kScatter) return from == spec.root;
  return true;
}

Slice slice_of(Space space, const Range& range) {
  return {space, range.offset_bytes, range.bytes};
}

}  // namespace

void write_moves(PlanBuilder& builder, const std::vector<Route>& routes, const PairSplits& splits) {
  const CollectiveSpec& spec = builder.spec();
  const Layout layout(spec);
  const int n = spec.rank_count;
  // In place all_to_all: bytes land where others still have to be put from.
  const bool is_overwriting = spec.is_in_place && spec.collective == Collective::kAllToAll;
  struct Landed {
    Slice from;
    Slice to;
    StepIndex ready;
  };
  std::vector<std::vector<Landed>> landed(n);  // by receiver
  std::vector<StepList> reads(n);              // by rank: steps that read its input
  // By rank: the halves of what it has last moved at this pace.
  std::vector<std::array<StepList, 2>> pace(n);
  std::vector<StepList> heard(n);  // by receiver: the first half of the last one to it is there
  for (int distance = 0; distance < n; ++distance) {
    std::vector<std::array<StepList, 2>> left(n);  // by sender
    std::vector<std::array<StepList, 2>> came(n);  // by receiver
    for (int from = 0; from < n; ++from) {
      const int to = (from + distance) % n;
      const Move move = move_of(spec, layout, from, to);
      if (from == to) {
        if (move.source.bytes == 0) continue;
        const Slice source = slice_of(Space::kInput, move.source);
        const Slice target = slice_of(Space::kOutput, move.target);
        if (!spec.is_in_place) {
          builder.copy(from, source, target, false, {});
        } else if (is_overwriting && move.source.offset_bytes != move.target.offset_bytes) {
          const Slice kept = builder.allocate(from, move.source.bytes);
          const StepIndex copied = builder.copy(from, source, kept, false, {});
          reads[from].push_back(copied);
          landed[from].push_back({kept, target, copied});
        }
        continue;
      }
      const bool is_paced =
          n > 2 && move.source.bytes >= kLeastPacedBytes && move.source.bytes <= kMostPacedBytes;
      const bool is_told = is_paced && spec.collective == Collective::kGather && distance > 1;
      // The second half of a paced move begins with the first half of the next.
      std::array<StepList, 2> halves;
      std::array<StepList, 2> before = pace[from];
      if (spec.collective == Collective::kGather && !is_told) builder.skip_signal(from);
      if (is_told) {
        const auto word =
            builder.transfer(to, from, routes.front().between(to, from), {Space::kInput, 0, 0},
                             {Space::kOutput, 0, 0}, heard[to]);
        before = {StepList{word.wait}, StepList{word.wait}};
      }
      std::array<StepList, 2> arrived;
      std::uint64_t done = 0;
      for (std::size_t s = 0; s < routes.size(); ++s) {
        std::uint64_t bytes = 0;
        if (move.source.bytes > 0) bytes = splits.at(move.source.bytes)[s];
        // Of uneven counts a rank knows its own only: that there is nothing has to be said, too, or
        // one that expects something would wait for it, and one that sends would not be heard.
        const bool says_nothing =
            s == 0 && move.source.bytes == 0 && !spec.counts.empty() && is_pair(spec, from, to);
        const std::vector<Range> pieces = cut_evenly({0, bytes}, 2, builder.element_bytes());
        for (int half = 0; half < 2; ++half) {
          // What is not paced goes in one piece.
          const std::uint64_t size = is_paced ? pieces[half].bytes : half == 0 ? bytes : 0;
          if (size == 0 && !(says_nothing && half == 0)) {
            builder.skip_signal(to);
            continue;
          }
          const Slice source{Space::kInput, move.source.offset_bytes + done, size};
          const Slice target{Space::kOutput, move.target.offset_bytes + done, size};
          const bool is_staged = is_overwriting && size > 0;
          const Slice landing = is_staged ? builder.allocate(to, size) : target;
          const auto moved = builder.transfer(from, to, routes[s].between(from, to), source,
                                              landing, is_paced ? before[half] : StepList{});
          halves[half].push_back(moved.put);
          arrived[half].push_back(moved.wait);
          reads[from].push_back(moved.put);
          if (is_staged) landed[to].push_back({landing, target, moved.wait});
          done += size;
        }
      }
      if (!is_paced) continue;
      left[from] = halves;
      came[to] = arrived;
      heard[to] = arrived[0];
    }
    for (int rank = 0; rank < n; ++rank) {
      // In step with those a rank receives from, or two would send to one and leave a third idle.
      for (int half = 0; half < 2; ++half) {
        StepList next = join(std::move(left[rank][half]), came[rank][half]);
        if (!next.empty()) pace[rank][half] = std::move(next);
      }
    }
  }
  for (int rank = 0; rank < n; ++rank) {
    for (const Landed& one : landed[rank]) {
      builder.copy(rank, one.from, one.to, false, join(reads[rank], {one.ready}));
    }
  }
}

}  // namespace polyrail
