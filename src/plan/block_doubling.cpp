// all_gather by recursive doubling and reduce_scatter by recursive halving, among a power of two of
// ranks: few messages where messages cost more than bytes.

#include "src/plan/blocks.hpp"
#include "src/plan/generators.hpp"

namespace polyrail {
namespace {

// The blocks first .. first + count - 1 lie behind one another in the vector.
Range range_of(const std::vector<Block>& blocks, int first, int count) {
  const Range& begin = blocks[first].range;
  return {begin.offset_bytes, blocks[first + count - 1].range.end() - begin.offset_bytes};
}

void gather(PlanBuilder& builder, const std::vector<Block>& blocks, const Route& route) {
  const int n = builder.spec().rank_count;
  std::vector<StepList> ready(n);
  for (int rank = 0; rank < n; ++rank) {
    const Block& own = blocks[rank];
    if (own.range.bytes == 0 || builder.spec().is_in_place) continue;
    ready[rank] = {builder.copy(rank, {Space::kInput, 0, own.range.bytes}, output_slice(own.range),
                                false, {})};
  }
  for (int distance = 1; distance < n; distance *= 2) {
    std::vector<StepList> next = ready;
    for (int rank = 0; rank < n; ++rank) {
      const int partner = rank ^ distance;
      const Range held = range_of(blocks, rank / distance * distance, distance);
      if (held.bytes == 0) continue;
      const bool is_input = distance == 1;
      const Slice source = is_input ? Slice{Space::kInput, 0, held.bytes} : output_slice(held);
      const auto moved = builder.transfer(rank, partner, route.between(rank, partner), source,
                                          output_slice(held), is_input ? StepList{} : ready[rank]);
      next[partner].push_back(moved.wait);
    }
    ready = std::move(next);
  }
}

void scatter(PlanBuilder& builder, const std::vector<Block>& blocks, const Route& route) {
  const int n = builder.spec().rank_count;
  std::vector<Held> values(n);  // of the blocks that the rank still has
  for (int rank = 0; rank < n; ++rank) {
    values[rank].at = {Space::kInput, 0, range_of(blocks, 0, n).bytes};
  }
  for (int distance = n / 2; distance >= 1; distance /= 2) {
    const auto kept = [&](int rank) {
      return range_of(blocks, rank / distance * distance, distance);
    };
    const auto part_of_value = [&](int rank, const Range& part) {
      const int first = rank / (2 * distance) * 2 * distance;
      Slice slice = values[rank].at;
      slice.offset_bytes += part.offset_bytes - blocks[first].range.offset_bytes;
      slice.bytes = part.bytes;
      return slice;
    };
    std::vector<Held> received(n);
    for (int rank = 0; rank < n; ++rank) {
      const int partner = rank ^ distance;
      const Range part = kept(partner);
      if (part.bytes == 0) continue;
      const Slice landing = builder.allocate(partner, part.bytes);
      const auto moved = builder.transfer(rank, partner, route.between(rank, partner),
                                          part_of_value(rank, part), landing, values[rank].ready);
      received[partner] = {landing, {moved.wait}};
    }
    for (int rank = 0; rank < n; ++rank) {
      const Range part = kept(rank);
      if (part.bytes == 0) {
        values[rank] = {};
        continue;
      }
      const bool is_last = distance == 1;
      const Slice target = is_last ? Slice{Space::kOutput, 0, part.bytes} : received[rank].at;
      values[rank] = {target,
                      {builder.reduce(rank, part_of_value(rank, part), received[rank].at, target,
                                      is_last, join(values[rank].ready, received[rank].ready))}};
    }
  }
}

}  // namespace

void write_doubling(PlanBuilder& builder, const Route& route) {
  const std::vector<Block> blocks = blocks_of(builder.spec());
  if (reduces(builder.spec().collective)) {
    scatter(builder, blocks, route);
  } else {
    gather(builder, blocks, route);
  }
}

}  // namespace polyrail
