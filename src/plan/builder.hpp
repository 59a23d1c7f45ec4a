// PlanBuilder: writes the schedules of all ranks together, so that a put and its wait, and the
// scratch they need, are always made in one place. For generators only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/plan/plan.hpp"
#include "src/plan/range.hpp"

namespace polyrail {

// Indices of steps of one rank's schedule.
using StepIndex = std::uint32_t;
using StepList = std::vector<StepIndex>;

// The steps of `a` and `b` together.
StepList join(StepList a, const StepList& b);

class PlanBuilder final {
 public:
  PlanBuilder(const CollectiveSpec& spec, int plane_count);

  const CollectiveSpec& spec() const { return plan_.spec; }
  std::uint64_t element_bytes() const { return size_bytes(plan_.spec.type); }

  // New scratch of one rank, aligned to 64 bytes, used by nothing else of the plan.
  Slice allocate(int rank, std::uint64_t bytes);

  // The same for what travels in the wire type, as long as `bytes` of the call's type.
  Slice allocate_wire(int rank, std::uint64_t bytes);

  // The two ends of one movement: `put` is a step of the sender, `wait` one of the receiver.
  struct Transfer {
    StepIndex put = 0;
    StepIndex wait = 0;
  };
  // `after`: steps of the sender. The caller makes sure that the target may be overwritten once
  // they are done.
  Transfer transfer(int from, int to, int plane, const Slice& source, const Slice& target,
                    StepList after);
  // Leaves out a signal of a rank that a transfer might have had.
  void skip_signal(int to) { ++signal_counts_[to]; }
  // target = op(source, operand)
  StepIndex reduce(int rank, const Slice& source, const Slice& operand, const Slice& target,
                   bool is_final, StepList after);
  StepIndex copy(int rank, const Slice& source, const Slice& target, bool is_final, StepList after);

  // Ends the building.
  Plan take(std::string algorithm) &&;

 private:
  StepIndex append(int rank, Step step, StepList after);

  Plan plan_;
  std::vector<std::uint32_t> signal_counts_;  // by receiving rank
};

}  // namespace polyrail
