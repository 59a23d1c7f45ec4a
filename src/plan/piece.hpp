// Piece: one contiguous range of the vector with the ranks that reduce it; what generators work on.
#pragma once

#include <vector>

#include "src/plan/builder.hpp"
#include "src/plan/range.hpp"

namespace polyrail {

// The plane that carries bytes between each pair of ranks.
struct Route {
  int rank_count = 0;
  std::vector<int>
      planes;  // [from * rank_count + to], symmetric; -1 where the ranks are not joined

  static Route over(int plane, int rank_count);
  int between(int a, int b) const { return planes[a * rank_count + b]; }
  friend bool operator==(const Route&, const Route&) = default;
};

// One of the ranks that take part, and where its contribution lies.
struct Member {
  int rank = 0;
  Slice data;      // the contribution, as long as the piece's range
  StepList after;  // steps of this rank after which data may be read
  // In-place call: this rank still reads the place of the result until it has used its data.
  bool is_in_place = false;

  // The data itself lies where the result goes: it must stay there until its puts are done.
  bool is_overwritten() const { return is_in_place && data.space != Space::kScratch; }
};

// All members end with the same result in their outputs, at `range`.
struct Piece {
  Range range;
  std::vector<Member> members;  // at least two
  Route route;
  // How much of the range each member reduces, for generators that cut it; empty: equal parts.
  std::vector<double> weights;

  int member_count() const { return static_cast<int>(members.size()); }
  int plane(int from, int to) const { return route.between(members[from].rank, members[to].rank); }
  // The part of a member's contribution that belongs to `part` of the vector.
  Slice data(int member, const Range& part) const;
};

// A piece whose members take part with their input.
Piece piece_of_inputs(const CollectiveSpec& spec, const Range& range, const Route& route,
                      const std::vector<int>& ranks);

Slice output_slice(const Range& range);

// Bytes and the steps after which they may be read.
struct Held {
  Slice at;
  StepList ready;
};

// Puts `held` from member `from` to `landing` at member `to`.
PlanBuilder::Transfer send(PlanBuilder& builder, const Piece& piece, int from, int to,
                           const Held& held, const Slice& landing);

// Where a contribution for `part` may land at `member`: in the output, if the member's own data is
// not there and `may_use_output`, else in new scratch.
Slice landing_slice(PlanBuilder& builder, const Piece& piece, int member, const Range& part,
                    bool may_use_output);

// Puts the finished bytes of `part` in `source` at member `from` into the output of member `to`;
// they are there after the returned step. In place that overwrites what `to` has contributed. Its
// puts have been read by then: without them the bytes would not be finished.
StepIndex deliver(PlanBuilder& builder, const Piece& piece, int from, int to, const Range& part,
                  const Held& source);

// Combines the operands of a rank from left to right into `target`; at least two, at least one in
// scratch, where the result grows. `after`: further steps before `target` may be written.
Held combine_in_order(PlanBuilder& builder, int rank, const std::vector<Held>& operands,
                      const Slice& target, bool is_final, const StepList& after);

}  // namespace polyrail
