#include "src/plan/piece.hpp"

#include <algorithm>

#include "src/base/assert.hpp"

namespace polyrail {

Route Route::over(int plane, int rank_count) {
  return {rank_count, std::vector<int>(static_cast<std::size_t>(rank_count) * rank_count, plane)};
}

Slice Piece::data(int member, const Range& part) const {
  PR_ASSERT(part.offset_bytes >= range.offset_bytes && part.end() <= range.end());
  const Slice& whole = members[member].data;
  return {whole.space, whole.offset_bytes + (part.offset_bytes - range.offset_bytes), part.bytes};
}

Piece piece_of_inputs(const CollectiveSpec& spec, const Range& range, const Route& route,
                      const std::vector<int>& ranks) {
  Piece piece;
  piece.range = range;
  piece.route = route;
  for (const int rank : ranks) {
    Member member;
    member.rank = rank;
    member.data = {Space::kInput, range.offset_bytes, range.bytes};
    member.is_in_place = spec.is_in_place;
    piece.members.push_back(std::move(member));
  }
  return piece;
}

Slice output_slice(const Range& range) {
  return {Space::kOutput, range.offset_bytes, range.bytes};
}

PlanBuilder::Transfer send(PlanBuilder& builder, const Piece& piece, int from, int to,
                           const Held& held, const Slice& landing) {
  return builder.transfer(piece.members[from].rank, piece.members[to].rank, piece.plane(from, to),
                          held.at, landing, held.ready);
}

Slice landing_slice(PlanBuilder& builder, const Piece& piece, int member, const Range& part,
                    bool may_use_output) {
  if (may_use_output && !piece.members[member].is_in_place) return output_slice(part);
  return builder.allocate(piece.members[member].rank, part.bytes);
}

Held combine_in_order(PlanBuilder& builder, int rank, const std::vector<Held>& operands,
                      const Slice& target, bool is_final, const StepList& after) {
  const auto growing = std::find_if(operands.begin(), operands.end(), [](const Held& operand) {
    return operand.at.space == Space::kScratch;
  });
  PR_ASSERT(operands.size() >= 2 && growing != operands.end());
  // Until its own turn comes the operand in whose place the result grows must be left alone.
  PR_ASSERT(growing - operands.begin() <= 1);
  Held sum = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const bool is_last = i + 1 == operands.size();
    StepList ready = join(sum.ready, operands[i].ready);
    if (is_last) ready = join(std::move(ready), after);
    const Slice to = is_last ? target : growing->at;
    sum = {to, {builder.reduce(rank, sum.at, operands[i].at, to, is_last && is_final, ready)}};
  }
  return sum;
}

StepIndex deliver(PlanBuilder& builder, const Piece& piece, int from, int to, const Range& part,
                  const Held& source) {
  return send(builder, piece, from, to, source, output_slice(part)).wait;
}

}  // namespace polyrail
