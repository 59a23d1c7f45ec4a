// All-to-all reduce-scatter and all-gather with parts of any size.

#include "src/plan/generators.hpp"

namespace polyrail {

DoneSteps direct(PlanBuilder& builder, const Piece& piece) {
  const int n = piece.member_count();
  if (n == 2) return one_shot(builder, piece);
  const std::vector<Range> parts =
      piece.weights.empty() ? cut_evenly(piece.range, n, builder.element_bytes())
                            : cut_by_weight(piece.range, piece.weights, builder.element_bytes());

  // Reduce-scatter. The owner adds what comes in the order in which it is expected: the rank just
  // below it sends to it first.
  std::vector<StepList> sums(n);                                         // by owner
  std::vector<std::vector<StepList>> puts(n, std::vector<StepList>(n));  // [from][owner]
  for (int distance = 1; distance < n; ++distance) {
    for (int from = 0; from < n; ++from) {
      const int owner = (from + distance) % n;
      const Range& part = parts[owner];
      if (part.bytes == 0) continue;
      const Member& receiver = piece.members[owner];
      const Member& sender = piece.members[from];
      const Slice total = output_slice(part);
      const bool is_first = distance == 1;
      const Slice landing =
          is_first && !receiver.is_in_place ? total : builder.allocate(receiver.rank, part.bytes);
      const auto moved = builder.transfer(sender.rank, receiver.rank,
                                          piece.route.between(sender.rank, receiver.rank),
                                          piece.data(from, part), landing, sender.after);
      if (sender.is_in_place) puts[from][owner].push_back(moved.put);
      StepList after = is_first ? receiver.after : sums[owner];
      after.push_back(moved.wait);
      sums[owner] = {builder.reduce(receiver.rank, is_first ? piece.data(owner, part) : total,
                                    landing, total, distance == n - 1, std::move(after))};
    }
  }

  // All-gather.
  DoneSteps done = sums;
  for (int distance = 1; distance < n; ++distance) {
    for (int owner = 0; owner < n; ++owner) {
      const int to = (owner + distance) % n;
      const Range& part = parts[owner];
      if (part.bytes == 0) continue;
      const Arrival arrival = deliver(builder, piece, owner, to, part, output_slice(part),
                                      sums[owner], puts[to][owner]);
      done[to].push_back(arrival.done);
    }
  }
  return done;
}

}  // namespace polyrail
