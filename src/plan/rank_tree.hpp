// RankTree: along which ranks bytes travel from one rank to all, or are combined on their way from
// all to one.
#pragma once

#include <vector>

namespace polyrail {

struct RankTree {
  std::vector<int> order;    // all ranks, the root first, everybody behind its parent
  std::vector<int> parents;  // by rank; -1 for the root

  int root() const { return order.front(); }
};

// Ranks that act as one towards the others: the ranks of a host, or each rank for itself.
using RankGroups = std::vector<std::vector<int>>;

// The shapes among groups. `first`: the group of the root. In comments g is the number of groups.
enum class Shape {
  kStar,   // from the root to every group: one hop
  kRelay,  // from the root to one group, and from that to all others: two hops
  kChain,  // from each group to the next: g - 1 hops
  kTree,   // binomial: in each hop everybody that has the bytes gives them to one more, log2 g hops
};

// A tree of the shape among groups. One rank of each group is on the way, chosen by `turn` so that
// different turns use different ranks; the others of its group are its leaves. `via`: the group
// that relays, other than the root's.
RankTree make_tree(const RankGroups& groups, Shape shape, int root, int via, int turn);

}  // namespace polyrail
