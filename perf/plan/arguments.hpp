// What polyrail-plan is asked about: the command line, and the topology and plan it names.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include <polyrail/status.hpp>

#include "src/plan/planner.hpp"

namespace polyrail::plan_tool {

struct Arguments {
  std::string topology_file;
  std::string synthetic;
  int rank_count = 2;  // of this machine, if no topology is given
  std::string plan_file;
  std::string collective = "all_reduce";
  std::uint64_t size_bytes = 16 << 20;
  std::string type = "float";
  std::string op = "sum";
  std::optional<int> root;
  std::vector<std::uint64_t> counts;  // of uneven parts, instead of the size
  bool is_ordered = false;
  bool is_in_place = false;
  bool splits_equally = false;
  std::string algorithm;
  bool is_json = false;
};

// Adds the options of one command.
void add_options(CLI::App& command, Arguments& arguments);

// A topology, the plan for it, and how it was made.
struct Subject {
  Topology topology;
  PlanOptions options;
  Plan plan;
};

// Reads, measures or plans what the arguments say. With a plan file its call is used.
Result<Subject> find_subject(const Arguments& arguments);

}  // namespace polyrail::plan_tool
