#include "src/plan/step_graph.hpp"

#include "src/plan/layout.hpp"

namespace polyrail {

StepGraph::StepGraph(const Plan& plan) {
  first_.push_back(0);
  for (std::size_t rank = 0; rank < plan.schedules.size(); ++rank) {
    for (const Step& step : plan.schedules[rank].steps) {
      steps_.push_back(&step);
      ranks_.push_back(static_cast<int>(rank));
    }
    first_.push_back(static_cast<Id>(steps_.size()));
  }

  partners_.resize(steps_.size());
  std::vector<std::vector<Id>> waits(plan.schedules.size());  // by rank and signal
  for (Id id = 0; id < size(); ++id) {
    if (step(id).op != StepOp::kWait) continue;
    std::vector<Id>& of_rank = waits[rank(id)];
    if (of_rank.size() <= step(id).signal) of_rank.resize(step(id).signal + 1);
    of_rank[step(id).signal] = id;
  }
  for (Id id = 0; id < size(); ++id) {
    if (step(id).op != StepOp::kPut) continue;
    partners_[id] = waits[step(id).peer][step(id).signal];
    partners_[partners_[id]] = id;
  }

  followed_.assign(steps_.size(), kFollowsNone);
  for (std::size_t rank = 0; rank < plan.schedules.size(); ++rank) {
    const Schedule& schedule = plan.schedules[rank];
    for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
      const std::uint32_t put = followed_put(plan.spec, schedule, i);
      if (put != kFollowsNone) followed_[first_[rank] + i] = first_[rank] + put;
    }
  }

  // Edges by their beginning: count, then fill.
  const auto for_each_edge = [this](auto&& visit) {
    for (Id id = 0; id < size(); ++id) {
      for (const std::uint32_t before : step(id).after) visit(first_[rank(id)] + before, id);
      if (step(id).op == StepOp::kWait) visit(partners_[id], id);
    }
  };
  next_begin_.assign(size() + 1, 0);
  for_each_edge([this](Id from, Id) { ++next_begin_[from + 1]; });
  for (std::size_t i = 1; i < next_begin_.size(); ++i) next_begin_[i] += next_begin_[i - 1];
  next_.resize(next_begin_.back());
  std::vector<std::uint32_t> fill = next_begin_;
  for_each_edge([this, &fill](Id from, Id to) { next_[fill[from]++] = to; });
}

std::vector<StepGraph::Id> StepGraph::order() const {
  std::vector<std::uint32_t> missing(size(), 0);
  for (const Id to : next_) ++missing[to];
  std::vector<Id> order;
  order.reserve(size());
  for (Id id = 0; id < size(); ++id) {
    if (missing[id] == 0) order.push_back(id);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Id to : next(order[i])) {
      if (--missing[to] == 0) order.push_back(to);
    }
  }
  return order;
}

std::string StepGraph::describe(Id id) const {
  return "rank " + std::to_string(rank(id)) + ", step " + std::to_string(id - first_[rank(id)]) +
         " (" + std::string(name(step(id).op)) + ")";
}

bool can_stream(const Step& step, const Step& wait) {
  if (step.op == StepOp::kReduce && step.operand == wait.target) return true;
  return (step.op == StepOp::kReduce || step.op == StepOp::kCopy) && step.source == wait.target;
}

std::uint32_t followed_put(const CollectiveSpec& spec, const Schedule& schedule,
                           std::uint32_t index) {
  const Step& step = schedule.steps[index];
  if (!spec.is_in_place || step.target.space == Space::kScratch) return kFollowsNone;
  if (!has_equal_bases(spec.collective)) return kFollowsNone;
  std::uint32_t found = kFollowsNone;
  bool streams = false;
  for (const std::uint32_t before : step.after) {
    const Step& other = schedule.steps[before];
    streams |= other.op == StepOp::kWait && can_stream(step, other);
    if (other.op != StepOp::kPut || other.source.space == Space::kScratch ||
        other.source.offset_bytes != step.target.offset_bytes ||
        other.source.bytes != step.target.bytes) {
      continue;
    }
    if (found != kFollowsNone) return kFollowsNone;
    found = before;
  }
  return streams ? found : kFollowsNone;
}

}  // namespace polyrail
