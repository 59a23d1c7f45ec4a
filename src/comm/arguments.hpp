// From a Call to what the planner and the engine need, or why it cannot be right.
#pragma once

#include <cstdint>

#include <polyrail/call.hpp>
#include <polyrail/status.hpp>

#include "src/plan/plan.hpp"

namespace polyrail {

// Fills in `spec` for the call on this rank; memory it has already is used again. Of an uneven
// exchange the counts of other pairs of ranks are left at zero.
// An error begins with the collective and the rank.
Status read_call(const Call& call, int rank, int rank_count, bool is_ordered, CollectiveSpec& spec);

}  // namespace polyrail
