// All-to-all reduce-scatter and all-gather with parts of any size.

#include "src/plan/generators.hpp"

namespace polyrail {

DoneSteps direct(PlanBuilder& builder, const Piece& piece) {
  const int n = piece.member_count();
  if (n == 2) return one_shot(builder, piece);
  const std::vector<Range> parts =
      piece.weights.empty() ? cut_evenly(piece.range, n, builder.element_bytes())
                            : cut_by_weight(piece.range, piece.weights, builder.element_bytes());

  // Reduce-scatter. The owner adds what comes in the order in which it is expected: the member
  // just below it sends to it first.
  std::vector<Held> sums(n);  // by owner
  for (int owner = 0; owner < n; ++owner) {
    sums[owner] = {piece.data(owner, parts[owner]), piece.members[owner].after};
  }
  for (int distance = 1; distance < n; ++distance) {
    for (int from = 0; from < n; ++from) {
      const int owner = (from + distance) % n;
      const Range& part = parts[owner];
      if (part.bytes == 0) continue;
      const Member& sender = piece.members[from];
      const Slice landing = landing_slice(builder, piece, owner, part, distance == 1);
      const auto moved =
          send(builder, piece, from, owner, {piece.data(from, part), sender.after}, landing);
      const Slice total = output_slice(part);
      sums[owner] = {total,
                     {builder.reduce(piece.members[owner].rank, sums[owner].at, landing, total,
                                     distance == n - 1, join(sums[owner].ready, {moved.wait}))}};
    }
  }

  // All-gather.
  DoneSteps done(n);
  for (int owner = 0; owner < n; ++owner) done[owner] = sums[owner].ready;
  for (int distance = 1; distance < n; ++distance) {
    for (int owner = 0; owner < n; ++owner) {
      const int to = (owner + distance) % n;
      if (parts[owner].bytes == 0) continue;
      done[to].push_back(deliver(builder, piece, owner, to, parts[owner], sums[owner]));
    }
  }
  return done;
}

}  // namespace polyrail
