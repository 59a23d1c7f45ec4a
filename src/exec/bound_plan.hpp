// BoundPlan: one rank's schedule, made ready to run: dependents instead of dependencies, signals in
// a table, and for each arriving put the step that may consume it slice by slice.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <polyrail/status.hpp>

#include "src/exec/intervals.hpp"
#include "src/plan/plan.hpp"

namespace polyrail {

inline constexpr std::uint32_t kNoStep = ~std::uint32_t{0};

struct BoundStep {
  StepOp op = StepOp::kWait;
  bool is_final = false;
  int peer = -1;
  int rail = -1;
  std::uint32_t signal = 0;
  Slice source;
  Slice operand;
  Slice target;
  std::uint32_t blocker_count = 0;  // steps that must be done before this one starts
  std::uint32_t dependent_begin = 0;
  std::uint32_t dependent_end = 0;
  // reduce, copy: the signal whose bytes it may consume as they land; its wait is then not among
  // the blockers. kNoStep: none.
  std::uint32_t stream_signal = kNoStep;
  bool streams_operand = false;  // the arriving bytes are the operand, not the source
  // In place, a step that streams and the put that reads what it writes over: the step follows the
  // put byte by byte. Both have the number of the pair in `followed`; `follower`: of the put.
  std::uint32_t followed = kNoStep;
  std::uint32_t follower = kNoStep;
};

struct BoundSignal {
  bool is_used = false;
  int peer = -1;
  int rail = -1;
  Slice target;
  std::uint32_t wait_step = kNoStep;
  std::uint32_t stream_step = kNoStep;
  // Nothing but the streaming step reads what lands, so the bytes need not land at all.
  bool may_skip_landing = false;
};

struct BoundPlan {
  CollectiveSpec spec;
  std::uint64_t scratch_bytes = 0;
  std::vector<BoundStep> steps;
  std::vector<std::uint32_t> dependents;      // of all steps, by dependent_begin/end
  std::vector<std::uint32_t> starters;        // steps without blockers
  std::vector<BoundSignal> signals;           // by signal number
  std::size_t followed_count = 0;             // pairs of a put and a step that follows it
  std::vector<std::pair<int, int>> expected;  // (peer, rail) that bytes will come from, once each
};

// Compiles the schedule of `rank`. A plan that is not well-formed is an internal error.
Result<BoundPlan> bind_plan(const Plan& plan, int rank);

}  // namespace polyrail
