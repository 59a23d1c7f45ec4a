// Plans, simulations and studies as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "src/plan/simulate.hpp"
#include "src/plan/study.hpp"

namespace polyrail::plan_tool {

nlohmann::json to_json(const Plan& plan);
nlohmann::json to_json(const Simulation& simulation, const Topology& topology);
// The candidates and what became of each route.
nlohmann::json to_json(const Study& study);

}  // namespace polyrail::plan_tool
