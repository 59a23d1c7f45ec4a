#include "src/plan/plan.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "src/plan/layout.hpp"

namespace polyrail {
namespace {

Status bad(std::string text) {
  return {StatusCode::kInvalidArgument, "plan: " + std::move(text)};
}

// What is wrong with a step, or "".
class ShapeCheck {
 public:
  explicit ShapeCheck(const Plan& plan) : plan_(plan) {}

  Status run() {
    if (Status status = check_spec(plan_.spec); !status.is_ok()) return status;
    if (plan_.schedules.size() != static_cast<std::size_t>(plan_.spec.rank_count)) {
      return bad(std::to_string(plan_.schedules.size()) + " schedules for " +
                 std::to_string(plan_.spec.rank_count) + " ranks");
    }
    const Layout layout(plan_.spec);
    for (int rank = 0; rank < plan_.spec.rank_count; ++rank) {
      sizes_.push_back({layout.input_bytes(rank), layout.output_bytes(rank)});
    }
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
  Status failure(std::size_t rank, std::size_t step, const std::string& wrong) const {
    const StepOp op = plan_.schedules[rank].steps[step].op;
    return bad("rank " + std::to_string(rank) + ", step " + std::to_string(step) + " (" +
               std::string(name(op)) + "): " + wrong);
  }

  std::string check_slice(const Slice& slice, int rank, std::string_view what) const {
    const bool is_wire = slice.space == Space::kWire;
    if (slice.space > Space::kWire || (is_wire && !plan_.spec.wire_type))
      return std::string(what) + " lies in no known space";
    const std::uint64_t size = slice.space == Space::kScratch ? plan_.schedules[rank].scratch_bytes
                               : is_wire                      ? plan_.schedules[rank].wire_bytes
                               : slice.space == Space::kInput ? sizes_[rank].input_bytes
                                                              : sizes_[rank].output_bytes;
    if (slice.offset_bytes > size || slice.bytes > size - slice.offset_bytes) {
      return std::string(what) + " ends outside the " + std::string(name(slice.space)) + " of " +
             std::to_string(size) + " bytes";
    }
    const std::uint64_t element = element_bytes(plan_.spec, slice.space);
    if (slice.offset_bytes % element != 0 || slice.bytes % element != 0) {
      return std::string(what) + " is not whole elements";
    }
    return {};
  }

  std::uint64_t elements(const Slice& slice) const {
    return slice.bytes / element_bytes(plan_.spec, slice.space);
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
      if ((step.source.space == Space::kWire) != (step.target.space == Space::kWire)) {
        return "source and target differ in type";
      }
      std::string wrong = check_slice(step.source, rank, "source");
      return wrong.empty() ? check_target(step.target, step.peer) : wrong;
    }
    if (step.op != StepOp::kReduce && step.op != StepOp::kCopy) return "unknown op";
    if (step.peer != -1 || step.rail != -1 || step.signal != 0) {
      return "it names a peer, rail or signal";
    }
    if (elements(step.source) != elements(step.target)) return "source and target differ in size";
    if (step.op == StepOp::kReduce &&
        (step.source.space == Space::kWire || step.target.space == Space::kWire)) {
      return "it combines in the wire type";
    }
    std::string wrong = check_slice(step.source, rank, "source");
    if (wrong.empty() && step.op == StepOp::kReduce) {
      if (elements(step.operand) != elements(step.target))
        return "operand and target differ in size";
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
      std::uint32_t signal = 0;
      std::size_t step = 0;
      bool has_put = false;
    };
    std::vector<std::vector<Meeting>> meetings(plan_.schedules.size());  // by signal
    const auto is_lower = [](const Meeting& a, const Meeting& b) { return a.signal < b.signal; };
    for (std::size_t rank = 0; rank < plan_.schedules.size(); ++rank) {
      const std::vector<Step>& steps = plan_.schedules[rank].steps;
      std::vector<Meeting>& of_rank = meetings[rank];
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].op != StepOp::kWait) continue;
        if (steps[i].signal >= kMostSignals) {
          return failure(rank, i, "signal " + std::to_string(steps[i].signal) + " is too large");
        }
        of_rank.push_back({steps[i].signal, i, false});
      }
      std::stable_sort(of_rank.begin(), of_rank.end(), is_lower);
      for (std::size_t i = 1; i < of_rank.size(); ++i) {
        if (of_rank[i].signal == of_rank[i - 1].signal) {
          return failure(rank, of_rank[i].step, "its signal has another wait");
        }
      }
    }
    for (std::size_t rank = 0; rank < plan_.schedules.size(); ++rank) {
      const std::vector<Step>& steps = plan_.schedules[rank].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& put = steps[i];
        if (put.op != StepOp::kPut) continue;
        std::vector<Meeting>& of_peer = meetings[put.peer];
        const auto meeting =
            std::lower_bound(of_peer.begin(), of_peer.end(), Meeting{put.signal}, is_lower);
        if (meeting == of_peer.end() || meeting->signal != put.signal) {
          return failure(rank, i, "nobody waits for it");
        }
        if (meeting->has_put) return failure(rank, i, "its signal is raised by another put");
        const Step& wait = plan_.schedules[put.peer].steps[meeting->step];
        if (wait.peer != static_cast<int>(rank)) return failure(rank, i, "its wait is for another");
        if (wait.rail != put.rail) return failure(rank, i, "its wait names another rail");
        if (wait.target != put.target) return failure(rank, i, "its wait names another target");
        meeting->has_put = true;
      }
    }
    for (std::size_t rank = 0; rank < plan_.schedules.size(); ++rank) {
      for (const Meeting& meeting : meetings[rank]) {
        if (!meeting.has_put) return failure(rank, meeting.step, "no put raises its signal");
      }
    }
    return ok();
  }

  struct Sizes {
    std::uint64_t input_bytes = 0;
    std::uint64_t output_bytes = 0;
  };

  const Plan& plan_;
  std::vector<Sizes> sizes_;  // by rank
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
    case Space::kWire:
      return "wire";
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

Status check_spec(const CollectiveSpec& spec) {
  if (spec.rank_count < 1) return bad("rank_count is " + std::to_string(spec.rank_count));
  if (!is_valid(spec.collective)) return bad("unknown collective");
  if (!is_valid(spec.type)) return bad("unknown element type");
  if (!is_valid(spec.op)) return bad("unknown operator");
  if (spec.root < 0 || spec.root >= spec.rank_count) {
    return bad("root " + std::to_string(spec.root) + " is not one of " +
               std::to_string(spec.rank_count) + " ranks");
  }
  if (spec.wire_type) {
    const DataType wire = *spec.wire_type;
    const bool is_narrow = is_valid(wire) && is_floating_point(wire) && size_bytes(wire) < 4;
    if (spec.collective != Collective::kAllReduce || spec.type != DataType::kFloat32 ||
        !is_narrow) {
      return bad("only an all_reduce of float can have a wire type, of 8 or 16 bits");
    }
  }
  const auto ranks = static_cast<std::uint64_t>(spec.rank_count);
  const bool is_exchange = spec.collective == Collective::kAllToAll;
  if (!spec.counts.empty()) {
    if (!has_parts(spec.collective)) return bad("the collective has no parts to be uneven");
    const std::uint64_t wanted = is_exchange ? ranks * ranks : ranks;
    if (spec.counts.size() != wanted) {
      return bad(std::to_string(spec.counts.size()) + " counts instead of " +
                 std::to_string(wanted));
    }
  }
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / size_bytes(spec.type);
  const std::uint64_t part_count = !has_parts(spec.collective) ? 1
                                   : is_exchange               ? ranks * ranks
                                                               : ranks;
  if (spec.count > most / part_count) {
    return bad("count " + std::to_string(spec.count) + " overflows the byte count");
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t count : spec.counts) {
    if (count > most - sum) return bad("the counts overflow the byte count");
    sum += count;
  }
  return ok();
}

Status check_shape(const Plan& plan) {
  return ShapeCheck(plan).run();
}

}  // namespace polyrail
