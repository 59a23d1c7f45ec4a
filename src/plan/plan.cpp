#include "src/plan/plan.hpp"

#include <limits>

namespace polyrail {
namespace {

// What is wrong with a step, or "".
class ShapeCheck {
 public:
  explicit ShapeCheck(const Plan& plan) : plan_(plan) {}

  Status run() {
    if (Status status = check_spec(); !status.is_ok()) return status;
    for (std::size_t rank = 0; rank < plan_.schedules.size(); ++rank) {
      const std::vector<Step>& steps = plan_.schedules[rank].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        std::string wrong = check_step(static_cast<int>(rank), i);
        if (wrong.empty()) wrong = check_after(steps[i], i);
        if (!wrong.empty()) return failure(rank, i, wrong);
      }
    }
    return check_signals();
  }

 private:
  static Status bad(std::string text) {
    return {StatusCode::kInvalidArgument, "plan: " + std::move(text)};
  }

  Status failure(std::size_t rank, std::size_t step, const std::string& wrong) const {
    const StepOp op = plan_.schedules[rank].steps[step].op;
    return bad("rank " + std::to_string(rank) + ", step " + std::to_string(step) + " (" +
               std::string(name(op)) + "): " + wrong);
  }

  Status check_spec() const {
    const CollectiveSpec& spec = plan_.spec;
    if (spec.rank_count < 1) return bad("rank_count is " + std::to_string(spec.rank_count));
    if (plan_.schedules.size() != static_cast<std::size_t>(spec.rank_count)) {
      return bad(std::to_string(plan_.schedules.size()) + " schedules for " +
                 std::to_string(spec.rank_count) + " ranks");
    }
    if (!is_valid(spec.type)) return bad("unknown element type");
    if (!is_valid(spec.op)) return bad("unknown operator");
    if (spec.count > std::numeric_limits<std::uint64_t>::max() / size_bytes(spec.type)) {
      return bad("count " + std::to_string(spec.count) + " overflows the byte count");
    }
    return ok();
  }

  std::string check_slice(const Slice& slice, int rank, std::string_view what) const {
    if (slice.space > Space::kScratch) return std::string(what) + " lies in no known space";
    const std::uint64_t size =
        slice.space == Space::kScratch ? plan_.schedules[rank].scratch_bytes : plan_.spec.bytes();
    if (slice.offset_bytes > size || slice.bytes > size - slice.offset_bytes) {
      return std::string(what) + " ends outside the " + std::string(name(slice.space)) + " of " +
             std::to_string(size) + " bytes";
    }
    const std::uint64_t element = size_bytes(plan_.spec.type);
    if (slice.offset_bytes % element != 0 || slice.bytes % element != 0) {
      return std::string(what) + " is not whole elements";
    }
    return {};
  }

  std::string check_target(const Slice& target, int rank) const {
    if (target.space == Space::kInput) return "target lies in the input";
    return check_slice(target, rank, "target");
  }

  std::string check_step(int rank, std::size_t index) const {
    const Step& step = plan_.schedules[rank].steps[index];
    if (step.op == StepOp::kPut || step.op == StepOp::kWait) {
      if (step.peer < 0 || step.peer >= plan_.spec.rank_count || step.peer == rank) {
        return "peer " + std::to_string(step.peer) + " is not another rank";
      }
      if (step.rail < 0 || step.rail >= plan_.plane_count) {
        return "rail " + std::to_string(step.rail) + " is not one of the plan's " +
               std::to_string(plan_.plane_count) + " planes";
      }
      if (step.is_final) return "only a reduce or a copy can be final";
      if (step.operand != Slice{}) return "it has an operand";
      if (step.op == StepOp::kWait) {
        if (step.source != Slice{}) return "it has a source";
        return check_target(step.target, rank);
      }
      if (step.source.bytes != step.target.bytes) return "source and target differ in size";
      std::string wrong = check_slice(step.source, rank, "source");
      return wrong.empty() ? check_target(step.target, step.peer) : wrong;
    }
    if (step.op != StepOp::kReduce && step.op != StepOp::kCopy) return "unknown op";
    if (step.peer != -1 || step.rail != -1 || step.signal != 0) {
      return "it names a peer, rail or signal";
    }
    if (step.source.bytes != step.target.bytes) return "source and target differ in size";
    std::string wrong = check_slice(step.source, rank, "source");
    if (wrong.empty() && step.op == StepOp::kReduce) {
      if (step.operand.bytes != step.target.bytes) return "operand and target differ in size";
      wrong = check_slice(step.operand, rank, "operand");
    } else if (wrong.empty() && step.operand != Slice{}) {
      return "it has an operand";
    }
    return wrong.empty() ? check_target(step.target, rank) : wrong;
  }

  static std::string check_after(const Step& step, std::size_t index) {
    for (std::size_t i = 0; i < step.after.size(); ++i) {
      if (step.after[i] >= index) {
        return "it comes after step " + std::to_string(step.after[i]) + ", which is not earlier";
      }
      if (i > 0 && step.after[i] <= step.after[i - 1]) return "`after` is not ascending";
    }
    return {};
  }

  Status check_signals() const {
    struct Meeting {
      const Step* wait = nullptr;
      std::size_t step = 0;
      bool has_put = false;
    };
    std::vector<std::vector<Meeting>> meetings(plan_.schedules.size());
    for (std::size_t rank = 0; rank < plan_.schedules.size(); ++rank) {
      const std::vector<Step>& steps = plan_.schedules[rank].steps;
      std::size_t wait_count = 0;
      for (const Step& step : steps) wait_count += step.op == StepOp::kWait ? 1 : 0;
      meetings[rank].resize(wait_count);
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].op != StepOp::kWait) continue;
        if (steps[i].signal >= wait_count) {
          return failure(rank, i,
                         "signal " + std::to_string(steps[i].signal) + " of a schedule with " +
                             std::to_string(wait_count) + " waits");
        }
        Meeting& meeting = meetings[rank][steps[i].signal];
        if (meeting.wait != nullptr) return failure(rank, i, "its signal has another wait");
        meeting = {&steps[i], i, false};
      }
    }
    for (std::size_t rank = 0; rank < plan_.schedules.size(); ++rank) {
      const std::vector<Step>& steps = plan_.schedules[rank].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& put = steps[i];
        if (put.op != StepOp::kPut) continue;
        if (put.signal >= meetings[put.peer].size()) return failure(rank, i, "nobody waits for it");
        Meeting& meeting = meetings[put.peer][put.signal];
        if (meeting.has_put) return failure(rank, i, "its signal is raised by another put");
        const Step& wait = *meeting.wait;
        if (wait.peer != static_cast<int>(rank)) return failure(rank, i, "its wait is for another");
        if (wait.rail != put.rail) return failure(rank, i, "its wait names another rail");
        if (wait.target != put.target) return failure(rank, i, "its wait names another target");
        meeting.has_put = true;
      }
    }
    for (std::size_t rank = 0; rank < plan_.schedules.size(); ++rank) {
      for (const Meeting& meeting : meetings[rank]) {
        if (!meeting.has_put) return failure(rank, meeting.step, "no put raises its signal");
      }
    }
    return ok();
  }

  const Plan& plan_;
};

}  // namespace

std::string_view name(Space space) {
  switch (space) {
    case Space::kInput:
      return "input";
    case Space::kOutput:
      return "output";
    case Space::kScratch:
      return "scratch";
  }
  return "unknown";
}

std::string_view name(StepOp op) {
  switch (op) {
    case StepOp::kPut:
      return "put";
    case StepOp::kWait:
      return "wait";
    case StepOp::kReduce:
      return "reduce";
    case StepOp::kCopy:
      return "copy";
  }
  return "unknown";
}

Status check_shape(const Plan& plan) {
  return ShapeCheck(plan).run();
}

}  // namespace polyrail
