// Dissemination barrier (Hensgen, Finkel and Manber 1988): in round k each rank tells the one
// 2^k further on that it, and all it has heard of, are there.

#include "src/plan/generators.hpp"

namespace polyrail {

void write_barrier(PlanBuilder& builder, const Route& route) {
  const int n = builder.spec().rank_count;
  std::vector<StepList> heard(n);
  for (int distance = 1; distance < n; distance *= 2) {
    std::vector<StepList> next = heard;
    for (int rank = 0; rank < n; ++rank) {
      const int to = (rank + distance) % n;
      const auto moved = builder.transfer(rank, to, route.between(rank, to), {Space::kInput, 0, 0},
                                          {Space::kOutput, 0, 0}, heard[rank]);
      next[to].push_back(moved.wait);
    }
    heard = std::move(next);
  }
}

}  // namespace polyrail
