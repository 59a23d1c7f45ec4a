// Prefix reductions: the output of member i is the reduction of members 0 .. i, or, exclusive,
// 0 .. i-1. Operands are combined from left to right.

#include "src/plan/generators.hpp"

namespace polyrail {
namespace {

bool is_exclusive(const PlanBuilder& builder) {
  return builder.spec().collective == Collective::kExclusiveScan;
}

}  // namespace

DoneSteps scan_chain(PlanBuilder& builder, const Piece& piece) {
  const int n = piece.member_count();
  DoneSteps done(n);
  if (piece.range.bytes == 0) return done;
  const Slice output = output_slice(piece.range);
  Held prefix{piece.members[0].data, piece.members[0].after};  // of the members so far, at the last
  if (!is_exclusive(builder) && !piece.members[0].is_in_place) {
    done[0] = {builder.copy(piece.members[0].rank, prefix.at, output, false, prefix.ready)};
  }
  for (int i = 1; i < n; ++i) {
    const Member& member = piece.members[i];
    const bool is_last = i + 1 == n;
    if (!is_exclusive(builder)) {
      const Slice landing = landing_slice(builder, piece, i, piece.range, true);
      const auto moved = send(builder, piece, i - 1, i, prefix, landing);
      prefix = {output,
                {builder.reduce(member.rank, landing, member.data, output, false,
                                join(member.after, {moved.wait}))}};
      done[i] = prefix.ready;
      continue;
    }
    // The last member's own data goes nowhere, so that the prefix may land on it.
    const Slice landing =
        is_last ? output : landing_slice(builder, piece, i, piece.range, /*may_use_output=*/true);
    const auto moved = send(builder, piece, i - 1, i, prefix, landing);
    done[i] = {moved.wait};
    if (is_last) continue;
    const Slice sum = builder.allocate(member.rank, piece.range.bytes);
    prefix = {sum,
              {builder.reduce(member.rank, landing, member.data, sum, false,
                              join(member.after, {moved.wait}))}};
    if (landing != output) {
      done[i] = {
          builder.copy(member.rank, landing, output, false, join(prefix.ready, {moved.wait}))};
    }
  }
  return done;
}

DoneSteps scan_direct(PlanBuilder& builder, const Piece& piece) {
  const int n = piece.member_count();
  DoneSteps done(n);
  if (piece.range.bytes == 0) return done;
  const Slice output = output_slice(piece.range);
  std::vector<std::vector<Held>> operands(n);  // by member
  std::vector<StepList> puts(n);
  for (int from = 0; from < n; ++from) {
    const Member& member = piece.members[from];
    for (int to = from + 1; to < n; ++to) {
      const Slice landing = builder.allocate(piece.members[to].rank, piece.range.bytes);
      const auto moved = send(builder, piece, from, to, {member.data, member.after}, landing);
      puts[from].push_back(moved.put);
      operands[to].push_back({landing, {moved.wait}});
    }
    if (!is_exclusive(builder)) operands[from].push_back({member.data, member.after});
  }
  for (int i = 0; i < n; ++i) {
    if (operands[i].empty()) continue;
    const int rank = piece.members[i].rank;
    const StepList held_by = piece.members[i].is_overwritten() ? puts[i] : StepList{};
    if (operands[i].size() == 1) {
      if (i == 0 && piece.members[0].is_in_place) continue;
      done[i] = {builder.copy(rank, operands[i][0].at, output, false,
                              join(operands[i][0].ready, held_by))};
      continue;
    }
    done[i] = combine_in_order(builder, rank, operands[i], output, false, held_by).ready;
  }
  return done;
}

}  // namespace polyrail
