#include "src/exec/bound_plan.hpp"

#include <algorithm>
#include <string>

#include "src/plan/layout.hpp"
#include "src/plan/step_graph.hpp"

namespace polyrail {
namespace {

bool reads(const Layout& layout, int rank, const Step& step, const Layout::Place& place) {
  const auto overlaps = [&](const Slice& slice) {
    return layout.place(rank, slice).overlaps(place);
  };
  switch (step.op) {
    case StepOp::kWait:
      return false;
    case StepOp::kReduce:
      return overlaps(step.source) || overlaps(step.operand);
    case StepOp::kPut:
    case StepOp::kCopy:
      return overlaps(step.source);
  }
  return false;
}

// True if nothing but `consumer` ever looks at what lands in the wait's target.
bool is_private(const Layout& layout, int rank, const Schedule& schedule, std::size_t consumer,
                const Slice& target) {
  const Step& reader = schedule.steps[consumer];
  // In the output the landed bytes are a result, unless the consumer overwrites just them.
  if (target.space != Space::kScratch && !(reader.target == target)) return false;
  const Layout::Place place = layout.place(rank, target);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    if (i == consumer) continue;
    if (!reads(layout, rank, schedule.steps[i], place)) continue;
    // Later readers of an overwritten output see the consumer's result, not the landed bytes.
    if (target.space == Space::kScratch || i < consumer) return false;
  }
  return true;
}

// Finds the wait that feeds `step` and lies wholly under one of its inputs; the last one listed.
void find_stream(const Layout& layout, int rank, const Schedule& schedule, std::uint32_t index,
                 BoundPlan& bound) {
  const Step& step = schedule.steps[index];
  if (step.op != StepOp::kReduce && step.op != StepOp::kCopy) return;
  for (auto it = step.after.rbegin(); it != step.after.rend(); ++it) {
    const Step& wait = schedule.steps[*it];
    if (wait.op != StepOp::kWait || wait.target.bytes == 0) continue;
    const bool is_source = wait.target == step.source;
    const bool is_operand = step.op == StepOp::kReduce && wait.target == step.operand;
    if (is_source == is_operand) continue;
    BoundSignal& signal = bound.signals[wait.signal];
    if (signal.stream_step != kNoStep) continue;
    signal.stream_step = index;
    signal.may_skip_landing = is_private(layout, rank, schedule, index, wait.target);
    bound.steps[index].stream_signal = wait.signal;
    bound.steps[index].streams_operand = is_operand;
    if (wait.target.space == Space::kWire) {
      bound.steps[index].stream_factor = static_cast<std::uint32_t>(bound.wire_factor);
    }
    return;
  }
}

void find_followed(const CollectiveSpec& spec, const Schedule& schedule, std::uint32_t index,
                   BoundPlan& bound) {
  const std::uint32_t put = followed_put(spec, schedule, index);
  if (put == kFollowsNone || bound.steps[put].follower != kNoStep) return;
  BoundStep& step = bound.steps[index];
  step.followed = bound.steps[put].followed = static_cast<std::uint32_t>(bound.followed_count++);
  bound.steps[put].follower = index;
  // Bytes may have to wait for the put, so they must land.
  bound.signals[step.stream_signal].may_skip_landing = false;
}

void bind_takes(const Layout& layout, int rank, BoundPlan& bound) {
  bound.input_bytes = layout.input_bytes(rank);
  for (int one = 0; one < bound.spec.rank_count; ++one) {
    bound.most_input_bytes = std::max(bound.most_input_bytes, layout.input_bytes(one));
  }
  for (const Portion& portion : layout.outputs(rank)) {
    if (portion.bytes == 0) continue;
    // The inputs of several ranks begin at the same place of the vector.
    const std::uint64_t begin = layout.inputs(portion.first).front().origin_bytes;
    bound.takes.push_back({portion.offset_bytes, portion.bytes, portion.origin_bytes - begin,
                           portion.first, portion.end});
  }
}

}  // namespace

Result<BoundPlan> bind_plan(const Plan& plan, int rank) {
  const Schedule& schedule = plan.schedules.at(rank);
  const Layout layout(plan.spec);
  BoundPlan bound;
  bound.spec = plan.spec;
  bound.call_kind = call_kind(plan.spec);
  bound.call_count = call_count(plan.spec);
  bound.is_uneven_exchange = is_exchange(plan.spec.collective) && !plan.spec.counts.empty();
  bind_takes(layout, rank, bound);
  bound.scratch_bytes = schedule.scratch_bytes;
  bound.wire_bytes = schedule.wire_bytes;
  bound.wire_factor = size_bytes(plan.spec.type) / element_bytes(plan.spec, Space::kWire);
  bound.steps.resize(schedule.steps.size());

  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (step.op == StepOp::kWait) {
      if (step.signal >= kMostSignals) {
        return Status(StatusCode::kInternalError, "plan '" + plan.algorithm + "': signal number " +
                                                      std::to_string(step.signal) +
                                                      " is out of range");
      }
      if (bound.signals.size() <= step.signal) bound.signals.resize(step.signal + 1);
      BoundSignal& signal = bound.signals[step.signal];
      if (signal.is_used) {
        return Status(StatusCode::kInternalError, "plan '" + plan.algorithm + "': signal " +
                                                      std::to_string(step.signal) +
                                                      " is awaited twice");
      }
      signal.is_used = true;
      signal.peer = step.peer;
      signal.rail = step.rail;
      signal.target = step.target;
      signal.element_bytes =
          static_cast<std::uint32_t>(element_bytes(plan.spec, step.target.space));
      signal.wait_step = static_cast<std::uint32_t>(i);
      const std::pair<int, int> from{step.peer, step.rail};
      if (std::find(bound.expected.begin(), bound.expected.end(), from) == bound.expected.end()) {
        bound.expected.push_back(from);
      }
    }
  }
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    BoundStep& out = bound.steps[i];
    out.op = step.op;
    out.is_final = step.is_final;
    out.peer = step.peer;
    out.rail = step.rail;
    out.signal = step.signal;
    out.source = step.source;
    out.operand = step.operand;
    out.target = step.target;
    out.bytes = step.target.bytes * (step.target.space == Space::kWire ? bound.wire_factor : 1);
    find_stream(layout, rank, schedule, static_cast<std::uint32_t>(i), bound);
    if (out.stream_signal != kNoStep) {
      find_followed(plan.spec, schedule, static_cast<std::uint32_t>(i), bound);
    }
  }

  std::vector<std::vector<std::uint32_t>> dependents(schedule.steps.size());
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    BoundStep& step = bound.steps[i];
    const std::uint32_t own_wait =
        step.stream_signal == kNoStep ? kNoStep : bound.signals[step.stream_signal].wait_step;
    for (std::uint32_t before : schedule.steps[i].after) {
      if (before >= i) {
        return Status(StatusCode::kInternalError, "plan '" + plan.algorithm + "': step " +
                                                      std::to_string(i) +
                                                      " comes after a later step");
      }
      const BoundStep& other = bound.steps[before];
      if (before == own_wait || other.follower == i) {
        // Followed slice by slice; what that step itself waits for still comes first.
        for (std::uint32_t earlier : schedule.steps[before].after) {
          dependents[earlier].push_back(static_cast<std::uint32_t>(i));
          ++step.blocker_count;
        }
        continue;
      }
      dependents[before].push_back(static_cast<std::uint32_t>(i));
      ++step.blocker_count;
    }
  }
  for (std::size_t i = 0; i < bound.steps.size(); ++i) {
    BoundStep& step = bound.steps[i];
    step.dependent_begin = static_cast<std::uint32_t>(bound.dependents.size());
    bound.dependents.insert(bound.dependents.end(), dependents[i].begin(), dependents[i].end());
    step.dependent_end = static_cast<std::uint32_t>(bound.dependents.size());
    if (step.blocker_count == 0) bound.starters.push_back(static_cast<std::uint32_t>(i));
  }
  return bound;
}

}  // namespace polyrail
