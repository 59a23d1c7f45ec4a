// Drafter: from an algorithm to a recipe for it on a topology - the order of the ranks, the split
// over the rails, the parts of unequal hosts.
#pragma once

#include <vector>

#include "src/plan/compose.hpp"
#include "src/plan/planner.hpp"
#include "src/plan/routes.hpp"
#include "src/plan/split.hpp"

namespace polyrail {

struct Draft {
  Recipe recipe;
  std::vector<Split::Verdict> verdicts;  // by route
  double estimate_us = 0;                // rough: of the part that crosses hosts; 0: not known
};

// Borrows its arguments for its whole life.
class Drafter final {
 public:
  Drafter(const Topology& topology, const CollectiveSpec& spec, const PlanOptions& options,
          const std::vector<NamedRoute>& routes);

  int host_count() const { return host_count_; }    // that have ranks
  int most_ranks() const { return most_ranks_; }    // on one host
  int least_ranks() const { return least_ranks_; }  // on one that has any

  Draft draft(const Algorithm& algorithm) const;
  // direct, or two_level(direct), over mixed routes; among at least three hosts.
  Draft draft_mixed(int route_count) const;
  // About how many steps the plan has with so many chunks.
  double step_count(const Recipe& recipe, int chunk_count) const;

 private:
  Recipe recipe_of(const Algorithm& algorithm) const;
  std::vector<RailCost> crossing_costs(const Algorithm& algorithm,
                                       const std::vector<RailCost>& costs) const;
  std::vector<Range> split_over_routes(const Algorithm& algorithm, Draft& draft) const;
  Strand quickest_strand() const;
  void draft_moves(const Algorithm& algorithm, Draft& draft) const;
  std::vector<double> block_weights(const Algorithm& algorithm,
                                    const std::vector<double>& rates) const;
  std::vector<double> weights(const Algorithm& algorithm, const std::vector<double>& rates) const;

  const Topology& topology_;
  const CollectiveSpec& spec_;
  const PlanOptions& options_;
  const std::vector<NamedRoute>& routes_;
  std::vector<std::vector<RailCost>> costs_;  // by route and rank
  std::vector<int> rank_counts_;              // by host
  std::vector<int> host_ranks_;               // the first rank of each host that has any
  int host_count_ = 0;
  int most_ranks_ = 0;
  int least_ranks_ = 0;
};

}  // namespace polyrail
