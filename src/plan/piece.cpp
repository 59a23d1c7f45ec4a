#include "src/plan/piece.hpp"

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

Piece piece_of_inputs(const CollectiveSpec& spec, const Range& range, const Route& route) {
  Piece piece;
  piece.range = range;
  piece.route = route;
  for (int rank = 0; rank < spec.rank_count; ++rank) {
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

Arrival deliver(PlanBuilder& builder, const Piece& piece, int from, int to, const Range& part,
                const Slice& source, const StepList& after, const StepList& held_by) {
  const int sender = piece.members[from].rank;
  const int receiver = piece.members[to].rank;
  const int plane = piece.route.between(sender, receiver);
  if (held_by.empty()) {
    const Slice target = output_slice(part);
    const auto moved = builder.transfer(sender, receiver, plane, source, target, after);
    return {target, moved.wait, moved.wait};
  }
  const Slice landing = builder.allocate(receiver, part.bytes);
  const auto moved = builder.transfer(sender, receiver, plane, source, landing, after);
  StepList copy_after = held_by;
  copy_after.push_back(moved.wait);
  const StepIndex copied =
      builder.copy(receiver, landing, output_slice(part), /*is_final=*/false, copy_after);
  return {landing, moved.wait, copied};
}

}  // namespace polyrail
