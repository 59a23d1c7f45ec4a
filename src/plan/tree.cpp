// Binary tree: sums go up to the first member, the result comes down.

#include <algorithm>

#include "src/plan/generators.hpp"

namespace polyrail {

DoneSteps tree(PlanBuilder& builder, const Piece& piece) {
  const int n = piece.member_count();
  DoneSteps done(n);
  if (piece.range.bytes == 0) return done;
  const auto first_child = [](int i) { return 2 * i + 1; };
  const auto end_child = [n](int i) { return std::min(2 * i + 3, n); };

  std::vector<Held> values(n);
  for (int i = 0; i < n; ++i) values[i] = {piece.members[i].data, piece.members[i].after};
  for (int i = n - 1; i >= 0; --i) {
    const bool is_root = i == 0;
    Slice target = output_slice(piece.range);  // the root's
    for (int child = first_child(i); child < end_child(i); ++child) {
      const bool is_first = child == first_child(i);
      const bool is_last = child + 1 == end_child(i);
      const Slice landing = landing_slice(builder, piece, i, piece.range, is_root && is_first);
      const auto moved = send(builder, piece, child, i, values[child], landing);
      if (!is_root && is_first) target = landing;
      values[i] = {target,
                   {builder.reduce(piece.members[i].rank, values[i].at, landing, target,
                                   is_root && is_last, join(values[i].ready, {moved.wait}))}};
    }
  }

  done[0] = values[0].ready;
  for (int i = 0; i < n; ++i) {
    for (int child = first_child(i); child < end_child(i); ++child) {
      done[child] = {deliver(builder, piece, i, child, piece.range, values[i])};
      values[child] = {output_slice(piece.range), done[child]};
    }
  }
  return done;
}

}  // namespace polyrail
