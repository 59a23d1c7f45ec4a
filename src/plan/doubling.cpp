// Recursive doubling and halving-doubling. Both work on a power of two of members; the others hand
// their contribution to a neighbour first and get the result from it last.

#include "src/plan/generators.hpp"

namespace polyrail {
namespace {

// The power of two that goes on, in the order of the members, each with the sum of its block.
struct Folded {
  std::vector<int> active;   // member numbers
  std::vector<Held> values;  // by active
};

// Of the first 2r members, r = n - power, the even ones become passive.
Folded fold(PlanBuilder& builder, const Piece& piece) {
  const int n = piece.member_count();
  int power = 1;
  while (power * 2 <= n) power *= 2;
  Folded folded;
  for (int pair = 0; pair < n - power; ++pair) {
    const int passive = 2 * pair;
    const int active = passive + 1;
    const Member& sender = piece.members[passive];
    const Member& receiver = piece.members[active];
    const Slice landing = builder.allocate(receiver.rank, piece.range.bytes);
    const auto moved = send(builder, piece, passive, active, {sender.data, sender.after}, landing);
    const StepIndex sum = builder.reduce(receiver.rank, landing, receiver.data, landing, false,
                                         join(receiver.after, {moved.wait}));
    folded.active.push_back(active);
    folded.values.push_back({landing, {sum}});
  }
  for (int member = 2 * (n - power); member < n; ++member) {
    folded.active.push_back(member);
    folded.values.push_back({piece.members[member].data, piece.members[member].after});
  }
  return folded;
}

void unfold(PlanBuilder& builder, const Piece& piece, const Folded& folded, DoneSteps& done) {
  const int pair_count = piece.member_count() - static_cast<int>(folded.active.size());
  for (int pair = 0; pair < pair_count; ++pair) {
    const int passive = 2 * pair;
    const int active = passive + 1;
    done[passive] = {deliver(builder, piece, active, passive, piece.range,
                             {output_slice(piece.range), done[active]})};
  }
}

// The same formula on both sides of an exchange: the lower block of members first.
StepIndex reduce_in_order(PlanBuilder& builder, int rank, bool is_upper, const Held& own,
                          const Held& received, const Slice& target, bool is_final,
                          const StepList& held_by = {}) {
  const StepList after = join(join(own.ready, received.ready), held_by);
  return is_upper ? builder.reduce(rank, received.at, own.at, target, is_final, after)
                  : builder.reduce(rank, own.at, received.at, target, is_final, after);
}

bool is_raw_and_overwritten(const Member& member, const Held& value) {
  return member.is_overwritten() && value.at.space != Space::kScratch;
}

}  // namespace

DoneSteps recursive_doubling(PlanBuilder& builder, const Piece& piece) {
  DoneSteps done(piece.member_count());
  if (piece.range.bytes == 0) return done;
  Folded folded = fold(builder, piece);
  std::vector<Held>& values = folded.values;
  const int power = static_cast<int>(folded.active.size());
  std::vector<StepList> held_by(power);

  for (int distance = 1; distance < power; distance *= 2) {
    const bool is_last = distance * 2 == power;
    std::vector<Held> received(power);
    for (int a = 0; a < power; ++a) {
      const int partner = a ^ distance;
      const int to = folded.active[partner];
      const Slice landing = landing_slice(builder, piece, to, piece.range, is_last);
      const auto moved = send(builder, piece, folded.active[a], to, values[a], landing);
      if (is_raw_and_overwritten(piece.members[folded.active[a]], values[a])) {
        held_by[a].push_back(moved.put);
      }
      received[partner] = {landing, {moved.wait}};
    }
    for (int a = 0; a < power; ++a) {
      const Slice target = is_last ? output_slice(piece.range) : received[a].at;
      const StepIndex sum = reduce_in_order(builder, piece.members[folded.active[a]].rank,
                                            (a & distance) != 0, values[a], received[a], target,
                                            is_last, is_last ? held_by[a] : StepList{});
      values[a] = {target, {sum}};
    }
  }
  for (int a = 0; a < power; ++a) done[folded.active[a]] = values[a].ready;
  unfold(builder, piece, folded, done);
  return done;
}

DoneSteps halving_doubling(PlanBuilder& builder, const Piece& piece) {
  DoneSteps done(piece.member_count());
  if (piece.range.bytes == 0) return done;
  Folded folded = fold(builder, piece);
  std::vector<Held>& values = folded.values;  // of the blocks that the member still has
  const int power = static_cast<int>(folded.active.size());
  const std::vector<Range> blocks = cut_evenly(piece.range, power, builder.element_bytes());
  const auto range_of = [&](int first, int count) {
    return Range{blocks[first].offset_bytes,
                 blocks[first + count - 1].end() - blocks[first].offset_bytes};
  };

  // With `distance` to the partner a member keeps the `distance` blocks that contain its own.
  for (int distance = power / 2; distance >= 1; distance /= 2) {
    const bool is_last = distance == 1;
    const auto kept = [&](int a) { return range_of(a / distance * distance, distance); };
    const auto had = [&](int a) {
      return range_of(a / (2 * distance) * 2 * distance, 2 * distance);
    };
    const auto part_of_value = [&](int a, const Range& part) {
      Slice slice = values[a].at;
      slice.offset_bytes += part.offset_bytes - had(a).offset_bytes;
      slice.bytes = part.bytes;
      return Held{slice, values[a].ready};
    };
    std::vector<Held> received(power);
    for (int a = 0; a < power; ++a) {
      const int partner = a ^ distance;
      const int to = folded.active[partner];
      const Range part = kept(partner);
      if (part.bytes == 0) continue;
      const Slice landing = landing_slice(builder, piece, to, part, is_last);
      const auto moved =
          send(builder, piece, folded.active[a], to, part_of_value(a, part), landing);
      received[partner] = {landing, {moved.wait}};
    }
    for (int a = 0; a < power; ++a) {
      const Range part = kept(a);
      if (part.bytes == 0) {
        values[a] = {};
        continue;
      }
      const Slice target = is_last ? output_slice(part) : received[a].at;
      const StepIndex sum =
          reduce_in_order(builder, piece.members[folded.active[a]].rank, (a & distance) != 0,
                          part_of_value(a, part), received[a], target, is_last);
      values[a] = {target, {sum}};
    }
  }

  for (int distance = 1; distance < power; distance *= 2) {
    std::vector<StepList> arrived(power);
    for (int a = 0; a < power; ++a) {
      const Range part = range_of(a / distance * distance, distance);
      if (part.bytes == 0) continue;
      const int partner = a ^ distance;
      arrived[partner] = {deliver(builder, piece, folded.active[a], folded.active[partner], part,
                                  {output_slice(part), values[a].ready})};
    }
    for (int a = 0; a < power; ++a) values[a].ready = join(values[a].ready, arrived[a]);
  }
  for (int a = 0; a < power; ++a) done[folded.active[a]] = values[a].ready;
  unfold(builder, piece, folded, done);
  return done;
}

}  // namespace polyrail
