// Ring: reduce-scatter, then all-gather, each in n-1 hops.

#include "src/plan/generators.hpp"

namespace polyrail {

DoneSteps ring(PlanBuilder& builder, const Piece& piece) {
  const int n = piece.member_count();
  const std::vector<Range> blocks = cut_evenly(piece.range, n, builder.element_bytes());

  std::vector<Held> held(n);  // by member: the block it sends next
  for (int i = 0; i < n; ++i) held[i] = {piece.data(i, blocks[i]), piece.members[i].after};

  // In hop h member i sends block i-h; after the last hop it holds the result of block i+1.
  for (int hop = 0; hop < n - 1; ++hop) {
    const bool is_last = hop == n - 2;
    std::vector<Held> received(n);
    for (int i = 0; i < n; ++i) {
      const int to = (i + 1) % n;
      const Range& block = blocks[(i - hop + n) % n];
      if (block.bytes == 0) continue;
      const Slice landing = landing_slice(builder, piece, to, block, is_last);
      const auto moved = send(builder, piece, i, to, held[i], landing);
      received[to] = {landing, join(piece.members[to].after, {moved.wait})};
    }
    for (int i = 0; i < n; ++i) {
      const Range& block = blocks[(i - 1 - hop + n) % n];
      held[i] = {};
      if (block.bytes == 0) continue;
      const Slice target = is_last ? output_slice(block) : received[i].at;
      held[i] = {target,
                 {builder.reduce(piece.members[i].rank, received[i].at, piece.data(i, block),
                                 target, is_last, received[i].ready)}};
    }
  }

  // In hop h member i sends block i+1-h.
  DoneSteps done(n);
  for (int i = 0; i < n; ++i) done[i] = held[i].ready;
  for (int hop = 0; hop < n - 1; ++hop) {
    std::vector<Held> received(n);
    for (int i = 0; i < n; ++i) {
      const int to = (i + 1) % n;
      const Range& block = blocks[(i + 1 - hop + n) % n];
      if (block.bytes == 0) continue;
      const StepIndex arrived = deliver(builder, piece, i, to, block, held[i]);
      received[to] = {output_slice(block), {arrived}};
      done[to].push_back(arrived);
    }
    held = std::move(received);
  }
  return done;
}

}  // namespace polyrail
