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

CostShape one_shot_cost(int n) {
  return {1, {{n - 1.0, 1}}};
}

CostShape direct_cost(int n) {
  if (n == 2) return one_shot_cost(n);
  return {2, {{2 * (n - 1.0), 1.0 / n}}};
}

CostShape ring_cost(int n) {
  return {2 * (n - 1.0), {{2 * (n - 1.0), 1.0 / n}}};
}

CostShape recursive_doubling_cost(int n) {
  const Doubling doubling = doubling_of(n);
  const double exchanges = doubling.steps + (doubling.folds ? 2 : 0);
  return {exchanges, {{exchanges, 1}}};
}

CostShape halving_doubling_cost(int n) {
  const Doubling doubling = doubling_of(n);
  CostShape shape;
  shape.latencies = 2 * doubling.steps + (doubling.folds ? 2 : 0);
  for (int part = 2; part <= doubling.power; part *= 2) shape.loads.push_back({2, 1.0 / part});
  if (doubling.folds) shape.loads.push_back({2, 1});
  return shape;
}

CostShape tree_cost(int n) {
  const Doubling doubling = doubling_of(n);
  return {2.0 * doubling.steps, {{n == 2 ? 2.0 : 3.0, 1}}};
}

// Preferred first where times are alike: few steps, then few peers at a time.
constexpr std::array<GeneratorInfo, 7> kGenerators = {{
    {"one_shot", one_shot, one_shot_cost, false, false, "everybody puts all it has to everybody"},
    {"one_shot_staged", one_shot_staged, one_shot_cost, false, false,
     "as one_shot, from a copy of the input"},
    {"recursive_doubling", recursive_doubling, recursive_doubling_cost, false, false,
     "pairs at distance 1, 2, 4 ... exchange all they have"},
    {"ring", ring, ring_cost, false, false, "blocks go round a ring of ranks twice"},
    {"halving_doubling", halving_doubling, halving_doubling_cost, false, false,
     "pairs exchange halves, quarters ... and back"},
    {"direct", direct, direct_cost, true, false,
     "each rank reduces its part for all and puts it to all"},
    {"tree", tree, tree_cost, false, true, "sums go up a tree, the result comes down"},
}};

}  // namespace

std::span<const GeneratorInfo> generators() {
  return kGenerators;
}

const GeneratorInfo* find_generator(std::string_view name) {
  for (const GeneratorInfo& info : kGenerators) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace polyrail
