// all_reduce that travels in a narrower type. Each contribution is rounded once, all are combined
// in fp32 in the order of the members, and the result is rounded once, so that it depends on
// neither the algorithm nor who computes it.

#include "src/plan/generators.hpp"

namespace polyrail {
namespace {

// The members' contributions to a range at one of them, rounded, and their reduction.
struct Narrow {
  std::vector<Held> operands;  // by member
  Slice result;                // rounded
  StepList ready;              // the rounded result is in `result`
  StepList done;               // and in the output
};

// In place the output is the member's own contribution: nothing may be written there before all
// that is put of it has been rounded, `own_rounded`.
void combine(PlanBuilder& builder, const Member& member, const Range& range, Narrow& narrow,
             const StepList& own_rounded) {
  const Slice total = output_slice(range);
  const int rank = member.rank;
  StepIndex last = builder.copy(rank, narrow.operands[0].at, total, false,
                                join(narrow.operands[0].ready, own_rounded));
  for (std::size_t i = 1; i < narrow.operands.size(); ++i) {
    last = builder.reduce(rank, total, narrow.operands[i].at, total,
                          i + 1 == narrow.operands.size(), join({last}, narrow.operands[i].ready));
  }
  narrow.result = builder.allocate_wire(rank, range.bytes);
  narrow.ready = {builder.copy(rank, total, narrow.result, false, {last})};
  narrow.done = {builder.copy(rank, narrow.result, total, false, narrow.ready)};
}

Held rounded(PlanBuilder& builder, const Member& member, const Slice& data) {
  const Slice narrow = builder.allocate_wire(member.rank, data.bytes);
  return {narrow, {builder.copy(member.rank, data, narrow, false, member.after)}};
}

}  // namespace

DoneSteps one_shot_narrow(PlanBuilder& builder, const Piece& piece) {
  const int n = piece.member_count();
  DoneSteps done(n);
  if (piece.range.bytes == 0) return done;
  std::vector<Narrow> narrow(n);
  std::vector<Held> own(n);
  for (int i = 0; i < n; ++i) {
    own[i] = rounded(builder, piece.members[i], piece.members[i].data);
    narrow[i].operands.resize(n);
    narrow[i].operands[i] = own[i];
  }
  for (int distance = 1; distance < n; ++distance) {
    for (int from = 0; from < n; ++from) {
      const int to = (from + distance) % n;
      const Slice landing = builder.allocate_wire(piece.members[to].rank, piece.range.bytes);
      const auto moved = send(builder, piece, from, to, own[from], landing);
      narrow[to].operands[from] = {landing, {moved.wait}};
    }
  }
  for (int i = 0; i < n; ++i) {
    combine(builder, piece.members[i], piece.range, narrow[i], own[i].ready);
    done[i] = narrow[i].done;
  }
  return done;
}

DoneSteps direct_narrow(PlanBuilder& builder, const Piece& piece) {
  const int n = piece.member_count();
  const std::vector<Range> parts =
      piece.weights.empty() ? cut_evenly(piece.range, n, builder.element_bytes())
                            : cut_by_weight(piece.range, piece.weights, builder.element_bytes());
  std::vector<Narrow> narrow(n);  // by owner
  for (int owner = 0; owner < n; ++owner) narrow[owner].operands.resize(n);
  std::vector<StepList> rounded_by(n);  // by member: of all its parts
  for (int distance = 0; distance < n; ++distance) {
    for (int from = 0; from < n; ++from) {
      const int owner = (from + distance) % n;
      if (parts[owner].bytes == 0) continue;
      const Held own = rounded(builder, piece.members[from], piece.data(from, parts[owner]));
      narrow[owner].operands[from] = own;
      rounded_by[from] = join(rounded_by[from], own.ready);
      if (owner == from) continue;
      const Slice landing = builder.allocate_wire(piece.members[owner].rank, parts[owner].bytes);
      const auto moved = send(builder, piece, from, owner, own, landing);
      narrow[owner].operands[from] = {landing, {moved.wait}};
    }
  }
  DoneSteps done(n);
  for (int owner = 0; owner < n; ++owner) {
    if (parts[owner].bytes == 0) continue;
    combine(builder, piece.members[owner], parts[owner], narrow[owner],
            narrow[owner].operands[owner].ready);
    done[owner] = narrow[owner].done;
  }
  for (int distance = 1; distance < n; ++distance) {
    for (int owner = 0; owner < n; ++owner) {
      if (parts[owner].bytes == 0) continue;
      const int to = (owner + distance) % n;
      const Member& member = piece.members[to];
      const Slice landing = builder.allocate_wire(member.rank, parts[owner].bytes);
      const auto moved =
          send(builder, piece, owner, to, {narrow[owner].result, narrow[owner].ready}, landing);
      done[to].push_back(builder.copy(member.rank, landing, output_slice(parts[owner]), false,
                                      join(rounded_by[to], {moved.wait})));
    }
  }
  return done;
}

}  // namespace polyrail
