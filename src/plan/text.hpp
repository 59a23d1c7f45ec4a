// Plans as text: for people, files and tests.
//
//   polyrail_plan 1
//   all_reduce count 1024 type float op sum ranks 2 in_place
//   algorithm direct planes 1 predicted_us 52.7 limit_us 36.4
//   rank 0 scratch 0
//     0 put 1 rail 0 signal 0 input+0:4096 -> output+0:4096
//     1 wait 1 rail 0 signal 0 -> output+0:4096
//     2 reduce input+0:4096 output+0:4096 -> output+0:4096 final after 1
//   rank 1 scratch 0
//   ...
//
// After the number of ranks: "root R", "ordered", "wire TYPE", "in_place", "counts C0 C1 ...", in
// this order, each only if it says something. Ranks and steps are numbered from 0 in order. A slice
// is SPACE+OFFSET:BYTES. "after" ends a line. topology/lines.hpp has the rules for words, quotes
// and comments.
#pragma once

#include <string>
#include <string_view>

#include <polyrail/status.hpp>

#include "src/plan/plan.hpp"

namespace polyrail {

// Prints every field that check_shape() allows to be set, so that parse_plan gives back an equal
// plan. Precondition: check_shape(plan) passes.
std::string to_text(const Plan& plan);
// One step as it stands in the text, without its number.
std::string to_text(const Step& step);

// Accepts what is written as a plan, also one that could not run: check_shape() is the caller's.
// An error begins with "line N: " and says what was expected there.
Result<Plan> parse_plan(std::string_view text);

}  // namespace polyrail
