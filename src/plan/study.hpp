// Study: all plans considered for a call, and which was chosen. make_plan() writes the chosen one
// out, explain() shows the rest.
#pragma once

#include <string>
#include <vector>

#include <polyrail/status.hpp>

#include "src/plan/draft.hpp"

namespace polyrail {

struct Candidate {
  Recipe recipe;
  double predicted_us = 0;
  std::size_t step_count = 0;            // of all ranks
  std::vector<Split::Verdict> verdicts;  // by route of the study
};

struct Study {
  std::vector<NamedRoute> routes;
  std::vector<Candidate> candidates;  // in the order in which they are preferred at equal times
  std::size_t chosen = 0;
  std::vector<std::string> left_out;  // algorithms not tried, and why
  Plan plan;                          // the chosen candidate, written out
};

// Preconditions: the spec is valid and has at least two ranks, the topology as many.
Result<Study> study(const Topology& topology, const CollectiveSpec& spec,
                    const PlanOptions& options);

}  // namespace polyrail
