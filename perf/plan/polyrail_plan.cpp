// polyrail-plan: prints, checks, simulates and explains the plan for a call on a topology.
//
// Exit code 0: done; 1: the plan is wrong; 2: the question is.
#include <algorithm>
#include <cstdio>

#include "perf/plan/arguments.hpp"
#include "perf/plan/json.hpp"
#include "src/plan/check.hpp"
#include "src/plan/text.hpp"
#include "topology/units.hpp"

namespace polyrail::plan_tool {
namespace {

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void put(const nlohmann::json& json) {
  put(json.dump(1) + "\n");
}

int print(const Subject& subject, bool is_json) {
  is_json ? put(to_json(subject.plan)) : put(to_text(subject.plan));
  return 0;
}

int check(const Subject& subject, bool is_json) {
  struct Part {
    const char* name;
    const char* promise;
    Status status;
  };
  const Plan& plan = subject.plan;
  const Part parts[] = {
      {"shape", "slices lie in their buffers, every put is met by one wait", check_shape(plan)},
      {"values", "every rank's contribution is in every result once", check_values(plan)},
      {"order", "no two accesses race, also run twice in a row", check_order(plan)}};
  bool is_right = true;
  nlohmann::json json = nlohmann::json::object();
  for (const Part& part : parts) {
    is_right = is_right && part.status.is_ok();
    if (is_json) {
      json[part.name] = part.status.is_ok() ? "ok" : part.status.message();
    } else {
      std::printf("%-6s  %s\n", part.name,
                  part.status.is_ok() ? ("ok: " + std::string(part.promise)).c_str()
                                      : part.status.message().c_str());
    }
  }
  if (is_json) put(json);
  return is_right ? 0 : 1;
}

int simulate(const Subject& subject, bool is_json) {
  const Simulation simulation = polyrail::simulate(subject.plan, subject.topology);
  if (is_json) {
    put(to_json(simulation, subject.topology));
    return 0;
  }
  std::printf("%s, %d ranks: %s", subject.plan.algorithm.c_str(), subject.plan.spec.rank_count,
              readable_time(simulation.total_us).c_str());
  if (subject.plan.limit_us > 0 && simulation.total_us > 0) {
    std::printf(", %.1f %% of the limit", 100 * subject.plan.limit_us / simulation.total_us);
  }
  std::printf("\n\n  rank  result after\n");
  for (std::size_t rank = 0; rank < simulation.rank_us.size(); ++rank) {
    std::printf("  %4zu  %12s\n", rank, readable_time(simulation.rank_us[rank]).c_str());
  }
  std::printf(
      "\n  sender                          plane        bytes     busy        last arrival\n");
  for (const RailUse& use : simulation.rails) {
    std::string sender = "host " + subject.topology.hosts[use.host].name;
    if (use.rank >= 0) sender += ", rank " + std::to_string(use.rank);
    std::printf("  %-30.30s  %5d %12llu %8.1f %%  %12s\n", sender.c_str(), use.plane,
                static_cast<unsigned long long>(use.bytes),
                100 * use.busy_us / std::max(simulation.total_us, 1e-9),
                readable_time(use.last_us).c_str());
  }
  return 0;
}

int explain(const Subject& subject, bool is_json) {
  if (!is_json) {
    put(polyrail::explain(subject.plan, subject.topology, subject.options));
    return 0;
  }
  nlohmann::json json = {{"algorithm", subject.plan.algorithm},
                         {"predicted_us", subject.plan.predicted_us},
                         {"limit_us", subject.plan.limit_us}};
  if (subject.plan.spec.rank_count > 1) {
    const Result<Study> studied = study(subject.topology, subject.plan.spec, subject.options);
    if (studied.is_ok()) json.update(to_json(studied.value()));
    json["simulation"] =
        to_json(polyrail::simulate(subject.plan, subject.topology), subject.topology);
  }
  put(json);
  return 0;
}

struct Command {
  const char* name;
  const char* sentence;
  int (*run)(const Subject& subject, bool is_json);
};

constexpr Command kCommands[] = {
    {"print", "Print the plan, step by step", print},
    {"check", "Prove that the plan computes the right values and that nothing races", check},
    {"simulate", "Print how long the plan takes, and how busy each rail is", simulate},
    {"explain", "Print why this plan: candidates, split over rails, bottleneck, limit", explain},
};

int run(int argc, char** argv) {
  CLI::App app("Plans of collectives: what is sent over which rail in which order, and why.",
               "polyrail-plan");
  app.require_subcommand(1);
  Arguments arguments;
  std::vector<CLI::App*> subcommands;
  for (const Command& command : kCommands) {
    subcommands.push_back(app.add_subcommand(command.name, command.sentence));
    add_options(*subcommands.back(), arguments);
  }
  const auto is_first = [argv](const Command& command) {
    return std::string_view(command.name) == argv[1];
  };
  if (argc > 1 && argv[1][0] != '-' && std::ranges::none_of(kCommands, is_first)) {
    std::fprintf(stderr, "polyrail-plan: there is no command \"%s\"; there are", argv[1]);
    for (const Command& command : kCommands) std::fprintf(stderr, " %s", command.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const Result<Subject> subject = find_subject(arguments);
  if (!subject.is_ok()) {
    std::fprintf(stderr, "polyrail-plan: %s\n", subject.status().message().c_str());
    return 2;
  }
  for (std::size_t c = 0; c < subcommands.size(); ++c) {
    if (subcommands[c]->parsed()) return kCommands[c].run(subject.value(), arguments.is_json);
  }
  return 2;
}

}  // namespace
}  // namespace polyrail::plan_tool

int main(int argc, char** argv) {
  return polyrail::plan_tool::run(argc, argv);
}
