// All-to-all reduce-scatter and all-gather with parts of any size.

#include "src/plan/generators.hpp"

namespace polyrail {

DoneSteps direct(PlanBuilder& builder, const Piece& piece) {
  const int n = piece.member_count();
  if (n == 2) return one_shot(builder, piece);
  const std::vector<Range> parts =
      piece.weights.empty() ? cut_evenly(piece.range, n, builder.element_bytes())
                            : cut_by_weight(piece.range, piece.weights, builder.element_bytes());

  // Reduce-scatter. The owner adds what comes in the order in which it is expected, the member
  // just below it sends to it first, or, if it must, in the order of the members.
  const bool is_ordered = builder.spec().is_ordered;
  std::vector<Held> sums(n);                   // by owner
  std::vector<std::vector<Held>> operands(n);  // by owner and member, in order only
  for (int owner = 0; owner < n; ++owner) {
    sums[owner] = {piece.data(owner, parts[owner]), piece.members[owner].after};
    operands[owner].resize(n);
    operands[owner][owner] = sums[owner];
  }
  for (int distance = 1; distance < n; ++distance) {
    for (int from = 0; from < n; ++from) {
      const int owner = (from + distance) % n;
      const Range& part = parts[owner];
      if (part.bytes == 0) continue;
      const Member& sender = piece.members[from];
      const Slice landing =
          landing_slice(builder, piece, owner, part, distance == 1 && !is_ordered);
      const auto moved =
          send(builder, piece, from, owner, {piece.data(from, part), sender.after}, landing);
      operands[owner][from] = {landing, {moved.wait}};
      if (is_ordered) continue;
      const Slice total = output_slice(part);
      sums[owner] = {total,
                     {builder.reduce(piece.members[owner].rank, sums[owner].at, landing, total,
                                     distance == n - 1, join(sums[owner].ready, {moved.wait}))}};
    }
  }
  for (int owner = 0; owner < n; ++owner) {
    if (!is_ordered || parts[owner].bytes == 0) continue;
    sums[owner] = combine_in_order(builder, piece.members[owner].rank, operands[owner],
                                   output_slice(parts[owner]), /*is_final=*/true, {});
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
