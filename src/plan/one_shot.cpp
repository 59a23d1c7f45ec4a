// All-to-all exchange of whole contributions.

#include <optional>

#include "src/plan/generators.hpp"

namespace polyrail {
namespace {

DoneSteps exchange(PlanBuilder& builder, const Piece& piece, bool is_staged) {
  const int n = piece.member_count();
  if (piece.range.bytes == 0) return DoneSteps(n);

  struct Operand {
    Slice at;
    StepList ready;
  };
  std::vector<std::vector<Operand>> operands(n, std::vector<Operand>(n));  // [holder][from]
  std::vector<Operand> source(n);
  std::vector<StepList> puts(n);
  for (int i = 0; i < n; ++i) {
    const Member& member = piece.members[i];
    operands[i][i] = {member.data, member.after};
    source[i] = operands[i][i];
    if (is_staged) {
      const Slice staged = builder.allocate(member.rank, piece.range.bytes);
      source[i] = {staged, {builder.copy(member.rank, member.data, staged, false, member.after)}};
    }
  }
  // The first operand from elsewhere may land in the output, where the sum then grows.
  const auto first_remote = [](int member) { return member == 0 ? 1 : 0; };
  for (int distance = 1; distance < n; ++distance) {
    for (int from = 0; from < n; ++from) {
      const int to = (from + distance) % n;
      const Member& receiver = piece.members[to];
      const bool lands_in_output = from == first_remote(to) && !receiver.is_in_place;
      const Slice target = lands_in_output ? output_slice(piece.range)
                                           : builder.allocate(receiver.rank, piece.range.bytes);
      const int sender = piece.members[from].rank;
      const auto moved =
          builder.transfer(sender, receiver.rank, piece.route.between(sender, receiver.rank),
                           source[from].at, target, source[from].ready);
      operands[to][from] = {target, {moved.wait}};
      if (!is_staged) puts[from].push_back(moved.put);
    }
  }

  DoneSteps done(n);
  for (int i = 0; i < n; ++i) {
    const Member& member = piece.members[i];
    Operand sum = operands[i][0];
    for (int from = 1; from < n; ++from) {
      const Operand& next = operands[i][from];
      const bool is_last = from == n - 1;
      // In place the sum must not grow over the contribution before that has been put.
      const Slice target = is_last || !member.is_in_place ? output_slice(piece.range)
                                                          : operands[i][first_remote(i)].at;
      StepList after = join(sum.ready, next.ready);
      if (is_last && member.is_in_place) after = join(after, puts[i]);
      const StepIndex reduced =
          builder.reduce(member.rank, sum.at, next.at, target, is_last, std::move(after));
      sum = {target, {reduced}};
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
