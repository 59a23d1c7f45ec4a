#include "perf/plan/json.hpp"

#include <string>

namespace polyrail::plan_tool {
namespace {

nlohmann::json to_json(const Slice& slice) {
  return {{"space", name(slice.space)}, {"offset", slice.offset_bytes}, {"bytes", slice.bytes}};
}

nlohmann::json to_json(const Step& step) {
  nlohmann::json json = {{"op", name(step.op)}, {"target", to_json(step.target)}};
  if (step.op == StepOp::kPut || step.op == StepOp::kWait) {
    json["peer"] = step.peer;
    json["rail"] = step.rail;
    json["signal"] = step.signal;
  }
  if (step.op != StepOp::kWait) json["source"] = to_json(step.source);
  if (step.op == StepOp::kReduce) json["operand"] = to_json(step.operand);
  if (step.is_final) json["final"] = true;
  json["after"] = step.after;
  return json;
}

const char* text(Split::Verdict verdict) {
  switch (verdict) {
    case Split::Verdict::kUsed:
      return "used";
    case Split::Verdict::kTooLate:
      return "too late";
    case Split::Verdict::kNoGain:
      return "no gain";
  }
  return "unknown";
}

}  // namespace

nlohmann::json to_json(const Plan& plan) {
  const CollectiveSpec& spec = plan.spec;
  nlohmann::json json = {{"collective", name(spec.collective)},
                         {"count", spec.count},
                         {"type", name(spec.type)},
                         {"in_place", spec.is_in_place},
                         {"ranks", spec.rank_count},
                         {"algorithm", plan.algorithm},
                         {"planes", plan.plane_count},
                         {"predicted_us", plan.predicted_us},
                         {"limit_us", plan.limit_us},
                         {"schedules", nlohmann::json::array()}};
  if (reduces(spec.collective)) json["op"] = name(spec.op);
  if (has_root(spec.collective)) json["root"] = spec.root;
  if (spec.is_ordered) json["ordered"] = true;
  if (!spec.counts.empty()) json["counts"] = spec.counts;
  for (const Schedule& schedule : plan.schedules) {
    nlohmann::json steps = nlohmann::json::array();
    for (const Step& step : schedule.steps) steps.push_back(to_json(step));
    json["schedules"].push_back({{"scratch", schedule.scratch_bytes}, {"steps", steps}});
  }
  return json;
}

nlohmann::json to_json(const Simulation& simulation, const Topology& topology) {
  nlohmann::json rails = nlohmann::json::array();
  for (const RailUse& use : simulation.rails) {
    nlohmann::json rail = {{"host", topology.hosts[use.host].name},
                           {"plane", use.plane},
                           {"bytes", use.bytes},
                           {"busy_us", use.busy_us},
                           {"last_us", use.last_us}};
    if (use.rank >= 0) rail["rank"] = use.rank;
    rails.push_back(std::move(rail));
  }
  return {{"total_us", simulation.total_us}, {"rank_us", simulation.rank_us}, {"rails", rails}};
}

nlohmann::json to_json(const Study& study) {
  nlohmann::json json = {{"chosen", study.chosen},
                         {"candidates", nlohmann::json::array()},
                         {"not_tried", study.left_out}};
  for (const Candidate& candidate : study.candidates) {
    nlohmann::json strands = nlohmann::json::array();
    for (const Strand& strand : candidate.recipe.strands) {
      strands.push_back({{"plane", strand.plane},
                         {"offset", strand.range.offset_bytes},
                         {"bytes", strand.range.bytes}});
    }
    nlohmann::json verdicts = nlohmann::json::array();
    for (std::size_t r = 0; r < study.routes.size(); ++r) {
      verdicts.push_back(
          {{"plane", study.routes[r].plane}, {"verdict", text(candidate.verdicts[r])}});
    }
    json["candidates"].push_back({{"algorithm", candidate.recipe.algorithm.name()},
                                  {"chunks", candidate.recipe.chunk_count},
                                  {"predicted_us", candidate.predicted_us},
                                  {"steps", candidate.step_count},
                                  {"shares", strands},
                                  {"rails", verdicts}});
  }
  return json;
}

}  // namespace polyrail::plan_tool
