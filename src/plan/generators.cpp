#include "src/plan/generators.hpp"

#include <array>

namespace polyrail {
namespace {

struct Doubling {
  int steps = 0;  // log2 of the power of two that goes on
  int power = 1;
  bool folds = false;
};

Doubling doubling_of(int member_count) {
  Doubling doubling;
  while (doubling.power * 2 <= member_count) {
    doubling.power *= 2;
    ++doubling.steps;
  }
  doubling.folds = doubling.power != member_count;
  return doubling;
}

CostShape one_shot_cost(Collective, int n) {
  return {1, {{n - 1.0, 1}}};
}

CostShape direct_cost(Collective collective, int n) {
  if (n == 2) return one_shot_cost(collective, n);
  return {2, {{2 * (n - 1.0), 1.0 / n}}};
}

CostShape ring_cost(Collective, int n) {
  return {2 * (n - 1.0), {{2 * (n - 1.0), 1.0 / n}}};
}

CostShape recursive_doubling_cost(Collective, int n) {
  const Doubling doubling = doubling_of(n);
  const double exchanges = doubling.steps + (doubling.folds ? 2 : 0);
  return {exchanges, {{exchanges, 1}}};
}

CostShape halving_doubling_cost(Collective, int n) {
  const Doubling doubling = doubling_of(n);
  CostShape shape;
  shape.latencies = 2 * doubling.steps + (doubling.folds ? 2 : 0);
  for (int part = 2; part <= doubling.power; part *= 2) shape.loads.push_back({2, 1.0 / part});
  if (doubling.folds) shape.loads.push_back({2, 1});
  return shape;
}

CostShape tree_cost(Collective, int n) {
  const Doubling doubling = doubling_of(n);
  return {2.0 * doubling.steps, {{n == 2 ? 2.0 : 3.0, 1}}};
}

// Blocks: of one root, or one of each rank.
CostShape star_cost(Collective collective, int n) {
  return {1, {{n - 1.0, has_parts(collective) ? 1.0 / n : 1}}};
}

CostShape relay_cost(Collective collective, int n) {
  return {2, {{n - 1.0, has_parts(collective) ? 1.0 / n : 1.0 / (n - 1)}}};
}

CostShape chain_cost(Collective collective, int n) {
  if (!has_parts(collective)) return {n - 1.0, {{1, 1}}};
  return {n - 1.0, {{n - 1.0, 1.0 / n}}};
}

CostShape binomial_cost(Collective, int n) {
  const Doubling doubling = doubling_of(n);
  const double hops = doubling.steps + (doubling.folds ? 1 : 0);
  return {hops, {{hops, 1}}};
}

CostShape block_doubling_cost(Collective, int n) {
  CostShape shape;
  for (int distance = 1; distance < n; distance *= 2) {
    shape.latencies += 1;
    shape.loads.push_back({1, static_cast<double>(distance) / n});
  }
  return shape;
}

// Of one pair's bytes, beside those of all other pairs.
CostShape move_cost(Collective, int n) {
  return {1, {{n - 1.0, 1}}};
}

CostShape barrier_cost(Collective, int n) {
  const Doubling doubling = doubling_of(n);
  return {static_cast<double>(doubling.steps + (doubling.folds ? 1 : 0)), {}};
}

// Preferred first where times are alike: few steps, then few peers at a time.
constexpr std::array<GeneratorInfo, 7> kAllReduce = {{
    {.name = "one_shot",
     .cost_shape = one_shot_cost,
     .idea = "everybody puts all it has to everybody",
     .generate = one_shot,
     .generate_narrow = one_shot_narrow,
     .keeps_rank_order = true},
    {.name = "one_shot_staged",
     .cost_shape = one_shot_cost,
     .idea = "as one_shot, from a copy of the input",
     .generate = one_shot_staged,
     .keeps_rank_order = true},
    {.name = "recursive_doubling",
     .cost_shape = recursive_doubling_cost,
     .idea = "pairs at distance 1, 2, 4 ... exchange all they have",
     .generate = recursive_doubling},
    {.name = "ring",
     .cost_shape = ring_cost,
     .idea = "blocks go round a ring of ranks twice",
     .generate = ring},
    {.name = "halving_doubling",
     .cost_shape = halving_doubling_cost,
     .idea = "pairs exchange halves, quarters ... and back",
     .generate = halving_doubling},
    {.name = "direct",
     .cost_shape = direct_cost,
     .idea = "each rank reduces its part for all and puts it to all",
     .generate = direct,
     .generate_narrow = direct_narrow,
     .wants_weights = true,
     .keeps_rank_order = true},
    {.name = "tree",
     .cost_shape = tree_cost,
     .idea = "sums go up a tree, the result comes down",
     .generate = tree,
     .wants_mirror = true},
}};

// Of these the one with the fewest peers at a time is preferred: many senders to one receiver get
// in each other's way, which is not predicted.
constexpr std::array<GeneratorInfo, 5> kBlocks = {{
    {.name = "ring",
     .cost_shape = chain_cost,
     .idea = "blocks go from each rank to the next",
     .shape = Shape::kChain},
    {.name = "tree",
     .cost_shape = binomial_cost,
     .idea = "whoever has a block hands it to one more in each hop",
     .shape = Shape::kTree},
    {.name = "direct",
     .cost_shape = star_cost,
     .idea = "between the root of each block and every other rank",
     .shape = Shape::kStar,
     .keeps_rank_order = true},
    {.name = "relay",
     .cost_shape = relay_cost,
     .idea = "each rank passes a share of the blocks on to all others",
     .shape = Shape::kRelay,
     .wants_weights = true,
     .keeps_rank_order = true},
    {.name = "doubling",
     .cost_shape = block_doubling_cost,
     .idea = "pairs at distance 1, 2, 4 ... exchange the blocks they have",
     .is_doubling = true},
}};

constexpr std::array<GeneratorInfo, 1> kMoves = {{
    {.name = "direct", .cost_shape = move_cost, .idea = "each pair moves its own bytes"},
}};

constexpr std::array<GeneratorInfo, 2> kScans = {{
    {.name = "direct",
     .cost_shape = star_cost,
     .idea = "each rank puts its contribution to all behind it",
     .generate = scan_direct,
     .keeps_rank_order = true},
    {.name = "ring",
     .cost_shape = chain_cost,
     .idea = "the prefix goes from each rank to the next",
     .generate = scan_chain,
     .keeps_rank_order = true},
}};

constexpr std::array<GeneratorInfo, 1> kBarriers = {{
    {.name = "dissemination",
     .cost_shape = barrier_cost,
     .idea = "each rank tells those 1, 2, 4 ... further on"},
}};

}  // namespace

std::span<const GeneratorInfo> generators(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return kAllReduce;
    case Collective::kReduce:
    case Collective::kBroadcast:
    case Collective::kReduceScatter:
    case Collective::kAllGather:
      return kBlocks;
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
      return kMoves;
    case Collective::kScan:
    case Collective::kExclusiveScan:
      return kScans;
    case Collective::kBarrier:
      return kBarriers;
  }
  return {};
}

const GeneratorInfo* find_generator(Collective collective, std::string_view name) {
  for (const GeneratorInfo& info : generators(collective)) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace polyrail
