#include "perf/plan/arguments.hpp"

#include <fstream>
#include <iostream>
#include <iterator>
#include <span>

#include "perf/plan/this_machine.hpp"
#include "src/plan/text.hpp"
#include "topology/synthetic.hpp"
#include "topology/text.hpp"

namespace polyrail::plan_tool {
namespace {

constexpr Collective kAllCollectives[] = {
    Collective::kAllReduce,     Collective::kReduce,       Collective::kBroadcast,
    Collective::kReduceScatter, Collective::kAllGather,    Collective::kAllToAll,
    Collective::kGather,        Collective::kScatter,      Collective::kBarrier,
    Collective::kScan,          Collective::kExclusiveScan};

Status bad(std::string text) {
  return {StatusCode::kInvalidArgument, std::move(text)};
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) return bad("cannot open " + path);
  }
  std::istream& stream = path == "-" ? std::cin : file;
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad()) return bad("cannot read " + path);
  return text;
}

Result<Topology> find_topology(const Arguments& arguments) {
  if (!arguments.topology_file.empty()) {
    Result<std::string> text = read_file(arguments.topology_file);
    if (!text.is_ok()) return text.status();
    Result<Topology> topology = parse_topology(text.value());
    if (topology.is_ok()) return topology;
    return bad(arguments.topology_file + ": " + topology.status().message());
  }
  if (!arguments.synthetic.empty()) {
    Result<Topology> topology = parse_synthetic(arguments.synthetic);
    if (topology.is_ok()) return topology;
    return bad("--synthetic: " + topology.status().message());
  }
  return measure_this_machine(arguments.rank_count);
}

// "there is no X; there are" and, in lines that fit, what there is.
template <typename T>
Status unknown(const char* option, const std::string& text, std::span<const T> all) {
  constexpr std::size_t kColumns = 90;
  std::string message = std::string(option) + ": there is no \"" + text + "\"; there are";
  std::string line;
  for (T value : all) {
    if (line.empty() || line.size() > kColumns - name(value).size()) {
      message += line + "\n ";
      line.clear();
    }
    line += " " + std::string(name(value));
  }
  return bad(message + line);
}

// Elements of the vector, or of each of its parts.
Status set_count(const Arguments& arguments, CollectiveSpec& spec) {
  const std::string collective(name(spec.collective));
  const auto n = static_cast<std::size_t>(spec.rank_count);
  if (!arguments.counts.empty()) {
    const std::size_t needed = spec.collective == Collective::kAllToAll ? n * n : n;
    if (!has_parts(spec.collective)) return bad("--counts: " + collective + " has no parts");
    if (arguments.counts.size() != needed) {
      return bad("--counts: " + collective + " of " + std::to_string(n) + " ranks needs " +
                 std::to_string(needed) + ", not " + std::to_string(arguments.counts.size()));
    }
    spec.counts = arguments.counts;
    return ok();
  }
  if (spec.collective == Collective::kBarrier) return ok();
  if (arguments.size_bytes % size_bytes(spec.type) != 0) {
    return bad("--size: " + std::to_string(arguments.size_bytes) + " bytes are not whole " +
               arguments.type + " elements");
  }
  spec.count = arguments.size_bytes / size_bytes(spec.type);
  if (has_parts(spec.collective)) spec.count /= n;
  return ok();
}

Result<CollectiveSpec> find_spec(const Arguments& arguments, int rank_count) {
  CollectiveSpec spec;
  const auto collective = parse_collective(arguments.collective);
  if (!collective) {
    return unknown("--collective", arguments.collective,
                   std::span<const Collective>(kAllCollectives));
  }
  const auto type = parse_data_type(arguments.type);
  if (!type) return unknown("--type", arguments.type, std::span<const DataType>(kAllDataTypes));
  const auto op = parse_reduce_op(arguments.op);
  if (!op) return unknown("--op", arguments.op, std::span<const ReduceOp>(kAllReduceOps));
  if (reduces(*collective) && !can_reduce(*type, *op)) {
    return bad("--op: elements of " + arguments.type + " have no " + arguments.op);
  }
  if (arguments.root && !has_root(*collective)) {
    return bad("--root: " + arguments.collective + " has none");
  }
  if (arguments.root.value_or(0) >= rank_count) {
    return bad("--root: " + std::to_string(*arguments.root) + " is not one of " +
               std::to_string(rank_count) + " ranks");
  }
  if (arguments.is_ordered && !reduces(*collective)) {
    return bad("--ordered: " + arguments.collective + " combines nothing");
  }
  spec.collective = *collective;
  spec.type = *type;
  if (reduces(*collective)) spec.op = *op;
  spec.root = arguments.root.value_or(0);
  spec.is_ordered = arguments.is_ordered;
  spec.is_in_place = arguments.is_in_place;
  spec.rank_count = rank_count;
  if (Status status = set_count(arguments, spec); !status.is_ok()) return status;
  return spec;
}

// A plan from a file may name planes and ranks that the topology lacks.
Status check_fits(const Plan& plan, const Topology& topology) {
  if (plan.spec.rank_count != topology.rank_count()) {
    return bad("the plan has " + std::to_string(plan.spec.rank_count) + " ranks, the topology " +
               std::to_string(topology.rank_count()));
  }
  for (int rank = 0; rank < plan.spec.rank_count; ++rank) {
    for (const Step& step : plan.schedules[rank].steps) {
      if (step.op != StepOp::kPut || topology.joins(step.rail, rank, step.peer)) continue;
      return bad("the plan's plane " + std::to_string(step.rail) + " does not join ranks " +
                 std::to_string(rank) + " and " + std::to_string(step.peer));
    }
  }
  return ok();
}

}  // namespace

void add_options(CLI::App& command, Arguments& arguments) {
  auto* topology =
      command.add_option_group("topology", "where the ranks are; this machine if none");
  topology->add_option("--topo", arguments.topology_file, "a .topo file, - for standard input");
  topology->add_option("--synthetic", arguments.synthetic,
                       "one line, such as \"2 hosts, rails 1gbit+2.5gbit 20us\"");
  topology
      ->add_option("--ranks", arguments.rank_count,
                   "measure this machine with so many ranks (default 2)")
      ->check(CLI::Range(1, 64));
  topology->require_option(0, 1);
  command.add_option("--collective", arguments.collective,
                     "all_reduce (default), all_gather, barrier, ...");
  auto* size = command.add_option("--size", arguments.size_bytes,
                                  "bytes of the vector, such as 64K (16M); all parts\n"
                                  "together, of all_to_all those that one rank sends");
  size->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  command
      .add_option("--counts", arguments.counts,
                  "uneven parts: elements of each rank's, such as 10,0,5;\n"
                  "of all_to_all what rank 0 sends to 0, 1, ..., then rank 1, ...")
      ->delimiter(',')
      ->excludes(size);
  command.add_option("--root", arguments.root, "of collectives that have one (0)")
      ->check(CLI::Range(0, 1'000'000));
  command.add_option("--type", arguments.type, "element type (float)");
  command.add_option("--op", arguments.op, "operator (sum)");
  command.add_flag("--ordered", arguments.is_ordered,
                   "combine in rank order, as in deterministic mode");
  command.add_flag("--in-place", arguments.is_in_place, "input and output are the same buffer");
  command.add_option("--algorithm", arguments.algorithm, "use this one instead of the best");
  command.add_flag("--equal-split", arguments.splits_equally,
                   "give all rails the same share, whatever their rates");
  command.add_option("--plan", arguments.plan_file,
                     "take the plan from this file, - for standard input");
  command.add_flag("--json", arguments.is_json, "print JSON");
}

Result<Subject> find_subject(const Arguments& arguments) {
  Subject subject;
  Result<Topology> topology = find_topology(arguments);
  if (!topology.is_ok()) return topology.status();
  subject.topology = std::move(topology).value();
  subject.options.algorithm = arguments.algorithm;
  subject.options.split_by_measurement = !arguments.splits_equally;

  if (!arguments.plan_file.empty()) {
    Result<std::string> text = read_file(arguments.plan_file);
    if (!text.is_ok()) return text.status();
    Result<Plan> plan = parse_plan(text.value());
    if (!plan.is_ok()) return bad(arguments.plan_file + ": " + plan.status().message());
    if (Status shape = check_shape(plan.value()); !shape.is_ok()) return shape;
    if (Status fits = check_fits(plan.value(), subject.topology); !fits.is_ok()) return fits;
    subject.plan = std::move(plan).value();
    return subject;
  }
  Result<CollectiveSpec> spec = find_spec(arguments, subject.topology.rank_count());
  if (!spec.is_ok()) return spec.status();
  Result<Plan> plan = make_plan(subject.topology, spec.value(), subject.options);
  if (!plan.is_ok()) return plan.status();
  subject.plan = std::move(plan).value();
  return subject;
}

}  // namespace polyrail::plan_tool
