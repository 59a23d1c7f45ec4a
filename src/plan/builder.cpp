#include "src/plan/builder.hpp"

#include <algorithm>
#include <utility>

#include "src/base/assert.hpp"

namespace polyrail {

namespace {

Slice allocate_in(Space space, std::uint64_t& size, std::uint64_t bytes) {
  constexpr std::uint64_t kAlignment = 64;
  const std::uint64_t offset = (size + kAlignment - 1) / kAlignment * kAlignment;
  size = offset + bytes;
  return {space, offset, bytes};
}

}  // namespace

StepList join(StepList a, const StepList& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

PlanBuilder::PlanBuilder(const CollectiveSpec& spec, int plane_count) {
  plan_.spec = spec;
  plan_.plane_count = plane_count;
  plan_.schedules.resize(spec.rank_count);
  signal_counts_.resize(spec.rank_count);
}

Slice PlanBuilder::allocate(int rank, std::uint64_t bytes) {
  return allocate_in(Space::kScratch, plan_.schedules[rank].scratch_bytes, bytes);
}

Slice PlanBuilder::allocate_wire(int rank, std::uint64_t bytes) {
  const std::uint64_t wire_element = polyrail::element_bytes(plan_.spec, Space::kWire);
  return allocate_in(Space::kWire, plan_.schedules[rank].wire_bytes,
                     bytes / element_bytes() * wire_element);
}

StepIndex PlanBuilder::append(int rank, Step step, StepList after) {
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  step.after = std::move(after);
  std::vector<Step>& steps = plan_.schedules[rank].steps;
  steps.push_back(std::move(step));
  return static_cast<StepIndex>(steps.size() - 1);
}

PlanBuilder::Transfer PlanBuilder::transfer(int from, int to, int plane, const Slice& source,
                                            const Slice& target, StepList after) {
  PR_ASSERT(source.bytes == target.bytes && from != to && plane >= 0);
  const std::uint32_t signal = signal_counts_[to]++;
  Step put;
  put.op = StepOp::kPut;
  put.peer = to;
  put.rail = plane;
  put.signal = signal;
  put.source = source;
  put.target = target;
  Step wait;
  wait.op = StepOp::kWait;
  wait.peer = from;
  wait.rail = plane;
  wait.signal = signal;
  wait.target = target;
  return {append(from, std::move(put), std::move(after)), append(to, std::move(wait), {})};
}

StepIndex PlanBuilder::reduce(int rank, const Slice& source, const Slice& operand,
                              const Slice& target, bool is_final, StepList after) {
  PR_ASSERT(source.bytes == target.bytes && operand.bytes > 0 && source.bytes > 0);
  Step step;
  step.op = StepOp::kReduce;
  step.source = source;
  step.operand = operand;
  step.target = target;
  step.is_final = is_final;
  return append(rank, std::move(step), std::move(after));
}

StepIndex PlanBuilder::copy(int rank, const Slice& source, const Slice& target, bool is_final,
                            StepList after) {
  PR_ASSERT(source.bytes > 0 && target.bytes > 0);
  Step step;
  step.op = StepOp::kCopy;
  step.source = source;
  step.target = target;
  step.is_final = is_final;
  return append(rank, std::move(step), std::move(after));
}

Plan PlanBuilder::take(std::string algorithm) && {
  plan_.algorithm = std::move(algorithm);
  return std::move(plan_);
}

}  // namespace polyrail
