#include "src/plan/rank_tree.hpp"

#include <algorithm>

#include "src/base/assert.hpp"

namespace polyrail {
namespace {

// By group: the one it gets bytes from, -1 for the root's. Numbers count from the root's group on.
std::vector<int> group_parents(Shape shape, int count, int via) {
  std::vector<int> parents(count, 0);
  parents[0] = -1;
  for (int g = 1; g < count; ++g) {
    switch (shape) {
      case Shape::kStar:
        break;
      case Shape::kRelay:
        if (g != via) parents[g] = via;
        break;
      case Shape::kChain:
        parents[g] = g - 1;
        break;
      case Shape::kTree:
        parents[g] = g & (g - 1);  // without its lowest bit
        break;
    }
  }
  return parents;
}

}  // namespace

RankTree make_tree(const RankGroups& groups, Shape shape, int root, int via, int turn) {
  const int count = static_cast<int>(groups.size());
  int first = 0;
  std::size_t rank_count = 0;
  for (int g = 0; g < count; ++g) {
    rank_count += groups[g].size();
    if (std::find(groups[g].begin(), groups[g].end(), root) != groups[g].end()) first = g;
  }
  const auto group_at = [&](int place) -> const std::vector<int>& {
    return groups[(first + place) % count];
  };
  const int via_place = (via - first + count) % count;
  PR_ASSERT(shape != Shape::kRelay || via_place != 0);
  const std::vector<int> parents = group_parents(shape, count, via_place);

  std::vector<int> entries(count);  // by place: the rank of the group that is on the way
  entries[0] = root;
  for (int place = 1; place < count; ++place) {
    const std::vector<int>& group = group_at(place);
    entries[place] = group[static_cast<std::size_t>(turn) % group.size()];
  }

  // Hop by hop: a relay before those it serves; in a binomial tree the larger subtrees first.
  std::vector<int> places(count);
  for (int place = 0; place < count; ++place) places[place] = place;
  const auto depth = [&](int place) {
    int hops = 0;
    for (; parents[place] >= 0; place = parents[place]) ++hops;
    return hops;
  };
  std::stable_sort(places.begin(), places.end(), [&](int a, int b) {
    if (depth(a) != depth(b)) return depth(a) < depth(b);
    return shape == Shape::kTree && a > b;
  });

  RankTree tree;
  tree.parents.assign(rank_count, -1);
  for (const int place : places) {
    tree.order.push_back(entries[place]);
    if (parents[place] >= 0) tree.parents[entries[place]] = entries[parents[place]];
  }
  for (const int place : places) {
    const std::vector<int>& group = group_at(place);
    const auto begin = std::find(group.begin(), group.end(), entries[place]) - group.begin();
    for (std::size_t i = 1; i < group.size(); ++i) {
      const int rank = group[(static_cast<std::size_t>(begin) + i) % group.size()];
      tree.order.push_back(rank);
      tree.parents[rank] = entries[place];
    }
  }
  return tree;
}

}  // namespace polyrail
