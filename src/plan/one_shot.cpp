// All-to-all exchange of whole contributions.

#include "src/plan/generators.hpp"

namespace polyrail {
namespace {

DoneSteps exchange(PlanBuilder& builder, const Piece& piece, bool is_staged) {
  const int n = piece.member_count();
  if (piece.range.bytes == 0) return DoneSteps(n);

  std::vector<std::vector<Held>> operands(n, std::vector<Held>(n));  // [holder][from]
  std::vector<Held> source(n);
  std::vector<StepList> held_by(n);
  for (int i = 0; i < n; ++i) {
    const Member& member = piece.members[i];
    operands[i][i] = {member.data, member.after};
    source[i] = operands[i][i];
    if (is_staged && member.is_overwritten()) {
      const Slice staged = builder.allocate(member.rank, piece.range.bytes);
      const StepIndex copied =
          builder.copy(member.rank, member.data, staged, /*is_final=*/false, member.after);
      source[i] = {staged, {copied}};
      held_by[i].push_back(copied);
    }
  }
  // The first operand from elsewhere may land in the output, where the sum then grows.
  const auto first_remote = [](int member) { return member == 0 ? 1 : 0; };
  for (int distance = 1; distance < n; ++distance) {
    for (int from = 0; from < n; ++from) {
      const int to = (from + distance) % n;
      const Slice landing =
          landing_slice(builder, piece, to, piece.range, from == first_remote(to));
      const auto moved = send(builder, piece, from, to, source[from], landing);
      operands[to][from] = {landing, {moved.wait}};
      if (piece.members[from].is_overwritten() && !is_staged) held_by[from].push_back(moved.put);
    }
  }

  DoneSteps done(n);
  for (int i = 0; i < n; ++i) {
    Held sum = operands[i][0];
    for (int from = 1; from < n; ++from) {
      const Held& next = operands[i][from];
      const bool is_last = from == n - 1;
      // In place the sum grows in scratch until the contribution has been put.
      const Slice target = is_last ? output_slice(piece.range) : operands[i][first_remote(i)].at;
      StepList after = join(sum.ready, next.ready);
      if (is_last) after = join(std::move(after), held_by[i]);
      sum = {target,
             {builder.reduce(piece.members[i].rank, sum.at, next.at, target, is_last, after)}};
    }
    done[i] = sum.ready;
  }
  return done;
}

}  // namespace

DoneSteps one_shot(PlanBuilder& builder, const Piece& piece) {
  return exchange(builder, piece, /*is_staged=*/false);
}

DoneSteps one_shot_staged(PlanBuilder& builder, const Piece& piece) {
  return exchange(builder, piece, /*is_staged=*/true);
}

}  // namespace polyrail
