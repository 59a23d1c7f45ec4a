// BoundPlan: one rank's schedule, made ready to run: dependents instead of dependencies, signals in
// a table, and for each arriving put the step that may consume it slice by slice.
#pragma once

#include <cstdint>
#include <string>
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
  std::uint64_t bytes = 0;          // reduce, copy: of the target, in the call's type
  std::uint32_t blocker_count = 0;  // steps that must be done before this one starts
  std::uint32_t dependent_begin = 0;
  std::uint32_t dependent_end = 0;
  // reduce, copy: the signal whose bytes it may consume as they land; its wait is then not among
  // the blockers. kNoStep: none.
  std::uint32_t stream_signal = kNoStep;
  bool streams_operand = false;     // the arriving bytes are the operand, not the source
  std::uint32_t stream_factor = 1;  // bytes of the call's type for each that arrives
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
  std::uint32_t element_bytes = 1;
  std::uint32_t wait_step = kNoStep;
  std::uint32_t stream_step = kNoStep;
  // Nothing but the streaming step reads what lands, so the bytes need not land at all.
  bool may_skip_landing = false;
};

// What a rank's output is made of, when every rank can read the inputs of all.
struct BoundTake {
  std::uint64_t output_offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t input_offset = 0;  // in the inputs of the ranks first .. end - 1
  int first = 0;
  int end = 0;
};

struct BoundPlan {
  CollectiveSpec spec;
  std::uint32_t call_kind = 0;  // fingerprint, see SliceHeader
  std::uint64_t call_count = 0;
  bool is_uneven_exchange = false;     // ranks know only their own counts
  std::uint64_t input_bytes = 0;       // of this rank
  std::uint64_t most_input_bytes = 0;  // of any rank; of an uneven exchange not known
  std::vector<BoundTake> takes;
  std::uint64_t scratch_bytes = 0;
  std::uint64_t wire_bytes = 0;
  std::uint64_t wire_factor = 1;  // bytes of the call's type for each of the wire type
  std::vector<BoundStep> steps;
  std::vector<std::uint32_t> dependents;      // of all steps, by dependent_begin/end
  std::vector<std::uint32_t> starters;        // steps without blockers
  std::vector<BoundSignal> signals;           // by signal number
  std::size_t followed_count = 0;             // pairs of a put and a step that follows it
  std::vector<std::pair<int, int>> expected;  // (peer, rail) that bytes will come from, once each
};

// Marks the call_count of uneven forms.
inline constexpr std::uint64_t kUnevenCount = std::uint64_t{1} << 63;

// The fingerprint of a call, and what it says as words: "all_reduce of 8 float, sum".
std::uint32_t call_kind(const CollectiveSpec& spec);
std::uint64_t call_count(const CollectiveSpec& spec);
std::string call_text(std::uint32_t kind, std::uint64_t count);

// Compiles the schedule of `rank`. A plan that is not well-formed is an internal error.
Result<BoundPlan> bind_plan(const Plan& plan, int rank);

}  // namespace polyrail
