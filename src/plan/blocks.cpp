#include "src/plan/blocks.hpp"

#include <algorithm>
#include <numeric>

#include "src/plan/layout.hpp"

namespace polyrail {
namespace {

int group_of(const RankGroups& groups, int rank) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (std::find(groups[g].begin(), groups[g].end(), rank) != groups[g].end()) {
      return static_cast<int>(g);
    }
  }
  return -1;
}

// [block][group]: the bytes of each block that each group passes on, or sends as its own.
std::vector<std::vector<double>> shares(const std::vector<Block>& blocks, const RankGroups& groups,
                                        const std::vector<double>& weights) {
  double whole = 0;
  for (const Block& block : blocks) whole += static_cast<double>(block.range.bytes);
  std::vector<double> left;  // by group: what it can still take
  for (const double weight : weights) left.push_back(weight * whole);
  std::vector<std::vector<double>> shares(blocks.size(), std::vector<double>(groups.size(), 0.0));
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const int own = group_of(groups, blocks[b].root);
    shares[b][own] = std::min(left[own], static_cast<double>(blocks[b].range.bytes));
    left[own] -= shares[b][own];
  }
  const double sum = std::accumulate(left.begin(), left.end(), 0.0);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const int own = group_of(groups, blocks[b].root);
    const double rest = static_cast<double>(blocks[b].range.bytes) - shares[b][own];
    if (rest <= 0) continue;
    const double others = sum - left[own];
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (static_cast<int>(g) == own) continue;
      shares[b][g] =
          others > 0 ? rest * left[g] / others : rest / static_cast<double>(groups.size() - 1);
    }
  }
  return shares;
}

void collect_in_order(PlanBuilder& builder, const Block& block, const BlockPart& part,
                      const Route& route, const Slice& source, const Slice& result) {
  const int at = part.combiner;
  const int rank_count = builder.spec().rank_count;
  std::vector<Held> operands(rank_count);
  for (int rank = 0; rank < rank_count; ++rank) {
    operands[rank] = {source, {}};
    if (rank == at) continue;
    const Slice landing = builder.allocate(at, source.bytes);
    const auto moved =
        builder.transfer(rank, at, route.between(rank, at), source, landing, StepList{});
    operands[rank] = {landing, {moved.wait}};
  }
  if (at == block.root) {
    combine_in_order(builder, at, operands, result, /*is_final=*/true, {});
    return;
  }
  const Slice target = builder.allocate(at, source.bytes);
  const Held sum = combine_in_order(builder, at, operands, target, /*is_final=*/true, {});
  builder.transfer(at, block.root, route.between(at, block.root), sum.at, result, sum.ready);
}

}  // namespace

std::vector<Block> blocks_of(const CollectiveSpec& spec) {
  const Layout layout(spec);
  if (!has_parts(spec.collective)) return {{spec.root, {0, spec.bytes()}, 0, 0}};
  std::vector<Block> blocks;
  for (int rank = 0; rank < spec.rank_count; ++rank) {
    const Range part = layout.part(rank);
    const bool is_reduced = reduces(spec.collective);
    blocks.push_back(
        {rank, part, is_reduced ? 0 : part.offset_bytes, is_reduced ? part.offset_bytes : 0});
  }
  return blocks;
}

std::vector<std::vector<BlockPart>> cut_blocks(const std::vector<Block>& blocks,
                                               const RankGroups& groups, Shape shape,
                                               const std::vector<double>& weights, bool is_ordered,
                                               std::uint64_t element_bytes) {
  std::vector<std::vector<BlockPart>> parts(blocks.size());
  std::vector<std::vector<double>> share_of;
  if (shape == Shape::kRelay) {
    const std::vector<double> alike(groups.size(), 1.0);
    share_of = shares(blocks, groups, weights.empty() ? alike : weights);
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    if (block.range.bytes == 0) continue;
    const int own = group_of(groups, block.root);
    const auto place = std::find(groups[own].begin(), groups[own].end(), block.root);
    const int turn = static_cast<int>(place - groups[own].begin());
    if (shape != Shape::kRelay) {
      parts[b].push_back({block.range, make_tree(groups, shape, block.root, -1, turn),
                          is_ordered ? block.root : -1});
      continue;
    }
    const std::vector<Range> ranges = cut_by_weight(block.range, share_of[b], element_bytes);
    for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
      if (ranges[g].bytes == 0) continue;
      const Shape its_shape = g == own ? Shape::kStar : Shape::kRelay;
      parts[b].push_back({ranges[g], make_tree(groups, its_shape, block.root, g, turn + g),
                          !is_ordered ? -1
                          : g == own
                              ? block.root
                              : groups[g][static_cast<std::size_t>(turn + g) % groups[g].size()]});
    }
  }
  return parts;
}

void spread(PlanBuilder& builder, const Block& block, const BlockPart& part, const Route& route) {
  const Slice source{Space::kInput, part.range.offset_bytes - block.input_origin, part.range.bytes};
  const Slice target{Space::kOutput, part.range.offset_bytes - block.output_origin,
                     part.range.bytes};
  std::vector<Held> held(builder.spec().rank_count);
  held[block.root] = {source, {}};
  for (const int rank : part.tree.order) {
    const int parent = part.tree.parents[rank];
    if (parent < 0) continue;
    const auto moved = builder.transfer(parent, rank, route.between(parent, rank), held[parent].at,
                                        target, held[parent].ready);
    held[rank] = {target, {moved.wait}};
  }
}

void collect(PlanBuilder& builder, const Block& block, const BlockPart& part, const Route& route) {
  const Slice source{Space::kInput, part.range.offset_bytes - block.input_origin, part.range.bytes};
  const Slice result{Space::kOutput, part.range.offset_bytes - block.output_origin,
                     part.range.bytes};
  if (part.combiner >= 0) {
    collect_in_order(builder, block, part, route, source, result);
    return;
  }
  const int rank_count = builder.spec().rank_count;
  std::vector<std::vector<Held>> arrived(rank_count);
  for (auto at = part.tree.order.rbegin(); at != part.tree.order.rend(); ++at) {
    const int rank = *at;
    const int parent = part.tree.parents[rank];
    Held sum{source, {}};
    for (std::size_t i = 0; i < arrived[rank].size(); ++i) {
      const Held& next = arrived[rank][i];
      const bool is_last = i + 1 == arrived[rank].size();
      const Slice to = parent < 0 ? result : arrived[rank].front().at;
      sum = {to,
             {builder.reduce(rank, sum.at, next.at, to, parent < 0 && is_last,
                             join(sum.ready, next.ready))}};
    }
    if (parent < 0) continue;
    const bool may_use_output =
        parent == block.root && arrived[parent].empty() && !builder.spec().is_in_place;
    const Slice landing = may_use_output ? result : builder.allocate(parent, source.bytes);
    const auto moved =
        builder.transfer(rank, parent, route.between(rank, parent), sum.at, landing, sum.ready);
    arrived[parent].push_back({landing, {moved.wait}});
  }
}

}  // namespace polyrail
