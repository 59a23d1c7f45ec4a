// Blocks: collectives in which ranges of the vector go from one rank to all (broadcast,
// all_gather), or are combined on their way from all to one (reduce, reduce_scatter).
#pragma once

#include <string_view>
#include <vector>

#include "src/plan/piece.hpp"
#include "src/plan/rank_tree.hpp"

namespace polyrail {

// A range of the vector that has one root: where it comes from or goes to.
struct Block {
  int root = 0;
  Range range;
  std::uint64_t input_origin = 0;  // in the vector: where the inputs begin, and the outputs
  std::uint64_t output_origin = 0;
};

// Whether the collective is made of blocks.
constexpr bool has_blocks(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kAllGather ||
         collective == Collective::kReduce || collective == Collective::kReduceScatter;
}
std::vector<Block> blocks_of(const CollectiveSpec& spec);

// Part of a block and the tree along which it travels.
struct BlockPart {
  Range range;
  RankTree tree;
  // In rank order, instead of `tree`: this rank combines everybody's and puts the result to the
  // root; -1: no.
  int combiner = -1;
};

// How blocks are cut so that the groups share the work of sending to more than one. `weights`: by
// group, how much of the vector it can give to, or take from, all others, as a fraction of it.
// Groups send their own blocks themselves as far as that goes. Without weights all blocks go their
// way by `shape` alone.
std::vector<std::vector<BlockPart>> cut_blocks(const std::vector<Block>& blocks,
                                               const RankGroups& groups, Shape shape,
                                               const std::vector<double>& weights, bool is_ordered,
                                               std::uint64_t element_bytes);

// Writes a part's way from the root's input to the outputs of the others.
// Hops and messages as the tree has them; no scratch.
void spread(PlanBuilder& builder, const Block& block, const BlockPart& part, const Route& route);

// Writes a part's way from all inputs to the root's output, combining where branches meet.
// Hops and messages as the tree has them; scratch: the part for each child of a rank, one less at
// a root that is not in place.
void collect(PlanBuilder& builder, const Block& block, const BlockPart& part, const Route& route);

}  // namespace polyrail
