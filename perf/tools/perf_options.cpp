#include "perf/tools/perf_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "src/plan/plan.hpp"

namespace polyrail::perf {
namespace {

CLI::Validator size_text() {
  return CLI::Validator(
      [](std::string& text) {
        std::uint64_t bytes = 0;
        return parse_size(text, bytes) ? std::string() : "'" + text + "' is not a size";
      },
      "SIZE");
}

// Those that need nothing but the input. "all" are the arithmetic ones, as in nccl-tests.
constexpr auto kOps =
    std::span(kAllReduceOps).first(static_cast<std::size_t>(ReduceOp::kPreMulSum));
constexpr auto kOpsOfAll = kOps.first(static_cast<std::size_t>(ReduceOp::kAvg) + 1);

// "sum, prod, ..., all".
template <typename T>
std::string names_of(const T& values) {
  std::string names;
  for (const auto value : values) names += std::string(name(value)) + ", ";
  return names + "all";
}

[[noreturn]] void refuse(const std::string& cause) {
  std::fprintf(stderr, "%s\n", cause.c_str());
  std::exit(2);
}

// The values of a list that have one of the texts, all of them for "all".
template <typename T, typename Parse>
std::vector<T> chosen(const char* option, const std::string& text, std::span<const T> all,
                      Parse&& parse) {
  if (text == "all") return {all.begin(), all.end()};
  if (const std::optional<T> one = parse(text)) return {*one};
  std::string names;
  for (T value : all) names += std::string(name(value)) + ", ";
  refuse(std::string(option) + ": '" + text + "' is none of " + names + "all");
}

std::optional<ReduceOp> parse_op(const std::string& text) {
  for (ReduceOp op : kAllReduceOps) {
    if (text == short_name(op)) return op;
  }
  return parse_reduce_op(text);
}

int parse_root(const std::string& text) {
  if (text == "all" || text == "-1") return -1;
  char* end = nullptr;
  const long root = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != '\0' || root < 0 || root > 1'000'000) {
    refuse("--root: '" + text + "' is neither a rank nor all");
  }
  return static_cast<int>(root);
}

// A prefix has no average.
bool has_op(Collective collective, ReduceOp op) {
  return !is_scan(collective) || (op != ReduceOp::kAvg && op != ReduceOp::kWeightedAvg);
}

}  // namespace

std::string_view short_name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kBitAnd:
      return "band";
    case ReduceOp::kBitOr:
      return "bor";
    case ReduceOp::kBitXor:
      return "bxor";
    case ReduceOp::kLogicalAnd:
      return "land";
    case ReduceOp::kLogicalOr:
      return "lor";
    case ReduceOp::kLogicalXor:
      return "lxor";
    case ReduceOp::kMaxLoc:
      return "mxloc";
    case ReduceOp::kMinLoc:
      return "mnloc";
    case ReduceOp::kPreMulSum:
      return "wsum";
    case ReduceOp::kWeightedAvg:
      return "wavg";
    default:
      return name(op);
  }
}

bool parse_size(const std::string& text, std::uint64_t& bytes) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(number >= 0)) return false;
  double scale = 1;
  switch (std::toupper(static_cast<unsigned char>(*end))) {
    case '\0':
      break;
    case 'K':
      scale = 1024;
      break;
    case 'M':
      scale = 1024.0 * 1024;
      break;
    case 'G':
      scale = 1024.0 * 1024 * 1024;
      break;
    default:
      return false;
  }
  if (scale > 1) ++end;
  if (*end == 'i') ++end;
  if (*end == 'B' || *end == 'b') ++end;
  if (*end != '\0' || number * scale > 1e18) return false;
  bytes = static_cast<std::uint64_t>(std::llround(number * scale));
  return true;
}

PerfOptions parse_perf_options(int argc, char** argv, const PerfTest& test) {
  PerfOptions options;
  std::string min_text = "32M";
  std::string max_text;
  std::string step_text = "1M";
  std::string op_text = "sum";
  std::string type_text = "float";
  std::string root_text = "0";
  int gpus = 1;
  int check = 1;
  int blocking = 1;
  std::string style = "nccl";
  CLI::App app(std::string(test.sentence) +
                   " on host memory.\nRanks: threads of this process (-t N), or one process each "
                   "from mpirun, torchrun or polyrail-lab.",
               test.program());
  app.set_help_flag("-h,--help", "Print this and exit");
  app.add_option("-t,--nthreads", options.threads, "Ranks as threads of this process")
      ->check(CLI::Range(1, 1024));
  app.add_option("-g,--ngpus", gpus, "Devices per thread; host memory knows only 1")
      ->check(CLI::Range(1, 1));
  app.add_option("-b,--minbytes", min_text, "Smallest size (K, M, G are binary)")
      ->check(size_text());
  app.add_option("-e,--maxbytes", max_text, "Largest size")->check(size_text());
  app.add_option("-i,--stepbytes", step_text, "Step between sizes")->check(size_text());
  app.add_option("-f,--stepfactor", options.step_factor, "Factor between sizes, instead of -i")
      ->check(CLI::Range(1.0001, 1e9));
  app.add_option("-n,--iters", options.iterations, "Timed iterations per size")
      ->check(CLI::Range(1, 1000000000));
  app.add_option("-w,--warmup_iters", options.warmup_iterations, "Untimed iterations before")
      ->check(CLI::Range(0, 1000000000));
  app.add_option("-m,--agg_iters", options.aggregated, "Calls per iteration")
      ->check(CLI::Range(1, 1000000));
  app.add_option("-N,--run_cycles", options.cycles, "Repetitions of the whole; 0: endless")
      ->check(CLI::Range(0, 1000000000));
  app.add_option("-o,--op", op_text, "Operator, such as sum, max or avg, or all");
  app.add_option("-d,--datatype", type_text, "Type, such as float, half or int32, or all");
  app.add_option("-r,--root", root_text, "Root of collectives that have one, or all");
  if (test.has_uneven) {
    app.add_option("--uneven", options.uneven,
                   "Rank 0 holds this fraction of the vector, the others share the rest")
        ->check(CLI::Range(0.0, 1.0));
  }
  if (test.has_skew) {
    app.add_option("--skew", options.skew, "0: equal counts; the more, the more they differ")
        ->check(CLI::Range(0.0, 100.0))
        ->capture_default_str();
    app.add_option("--seed", options.seed, "Of the random counts")->capture_default_str();
  }
  app.add_option("-c,--check", check, "Check results")->check(CLI::Range(0, 1000000));
  app.add_option("-a,--average", options.average,
                 "Time reported: 0 rank 0, 1 average, 2 minimum, 3 maximum of the ranks")
      ->check(CLI::Range(0, 3));
  app.add_option("-z,--blocking", blocking, "1: blocking calls; 0: asynchronous calls and a wait")
      ->check(CLI::Range(0, 3));
  app.add_option("-C,--report_cputime", options.reports_cpu_time,
                 "Report processor time of the calling process instead of latency");
  app.add_option("-R,--local_register", options.local_register,
                 "1, 2: buffers from polyrail::mem_alloc, which ranks of a host share")
      ->check(CLI::Range(0, 2));
  app.add_option("-S,--report_timestamps", options.has_timestamps, "Print the time of each line");
  app.add_option("-J,--output_file", options.json_file, "Write results as JSON")
      ->check([](const std::string& path) {
        const auto folder = std::filesystem::absolute(path).parent_path();
        return std::filesystem::is_directory(folder) ? std::string()
                                                     : "there is no folder " + folder.string();
      });
  app.add_option("-T,--timeout", options.timeout_s, "Deadline of one operation in seconds")
      ->check(CLI::Range(0, 1000000));
  app.add_option("-u,--unalign", options.unalign, "Shift buffers by so many elements")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("-I,--per_iter_timing", options.has_iteration_times,
                 "Time each iteration: columns min, max, p99, variation");
  app.add_option("-K,--per_iter_skip", options.skipped_iterations,
                 "With -I: leave out the first iterations")
      ->check(CLI::Range(0, 1000000));
  app.add_option("--style", style, "nccl or osu: two columns, size and latency")
      ->check(CLI::IsMember({"nccl", "osu"}));
  app.add_flag("--explain", options.explains, "Print the plan of each size and why it was chosen");
  app.add_flag("--rails", options.shows_rails,
               "Print what each rail of rank 0 carried, and its rate");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  parse_size(min_text, options.min_bytes);
  parse_size(max_text.empty() ? min_text : max_text, options.max_bytes);
  parse_size(step_text, options.step_bytes);
  if (options.max_bytes < options.min_bytes) refuse("--maxbytes is less than --minbytes");
  if (options.step_factor == 0 && options.step_bytes == 0) refuse("--stepbytes must not be 0");
  const std::span<const DataType> all_types(kAllDataTypes);
  const std::span<const ReduceOp> all_ops(kAllReduceOps);
  options.types = chosen("--datatype", type_text, all_types, parse_data_type);
  options.ops = chosen("--op", op_text, all_ops, parse_op);
  if (!test.reduces()) {
    options.ops = {ReduceOp::kSum};
  } else {
    std::erase_if(options.ops, [&](ReduceOp op) {
      return !has_op(test.collective, op) ||
             std::none_of(options.types.begin(), options.types.end(),
                          [op](DataType type) { return can_reduce(type, op); });
    });
    if (options.ops.empty()) {
      refuse(std::string(test.name) + " has no " + op_text + " of " + type_text);
    }
  }
  if (test.collective == Collective::kBarrier) options.types = {DataType::kInt8};
  options.root = parse_root(root_text);
  options.is_checked = check != 0;
  options.is_blocking = blocking != 0;
  options.style_osu = style == "osu";
  return options;
}

}  // namespace polyrail::perf
