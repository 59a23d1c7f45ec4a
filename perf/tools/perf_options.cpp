#include "perf/tools/perf_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <span>

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

}  // namespace

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

PerfOptions parse_perf_options(int argc, char** argv, const std::string& tool,
                               const std::string& sentence) {
  PerfOptions options;
  std::string min_text = "32M";
  std::string max_text;
  std::string step_text = "1M";
  std::string op_text = "sum";
  std::string type_text = "float";
  int gpus = 1;
  int check = 1;
  int blocking = 1;
  std::string style = "nccl";
  CLI::App app(sentence +
                   "\nRanks: threads of this process (-t N), or one process each from "
                   "mpirun, torchrun or polyrail-lab.",
               tool);
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
  app.add_option("-o,--op", op_text,
                 "sum, prod, min, max, avg, bit_and, max_loc, ... or all (the first five)");
  app.add_option("-d,--datatype", type_text, "float, int8, fp8_e4m3, bfloat16, ... or all");
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
  if (op_text == "all") {
    options.ops.assign(kOpsOfAll.begin(), kOpsOfAll.end());
  } else if (const auto op = parse_reduce_op(op_text); op && std::ranges::count(kOps, *op) > 0) {
    options.ops = {*op};
  } else {
    refuse("--op: '" + op_text + "' is none of " + names_of(kOps));
  }
  if (type_text == "all") {
    options.types.assign(std::begin(kAllDataTypes), std::end(kAllDataTypes));
  } else if (const auto type = parse_data_type(type_text)) {
    options.types = {*type};
  } else {
    refuse("--datatype: '" + type_text + "' is none of " + names_of(kAllDataTypes));
  }
  std::erase_if(options.types, [&](DataType type) {
    return std::ranges::none_of(options.ops, [&](ReduceOp op) { return can_reduce(type, op); });
  });
  if (options.types.empty()) refuse("--op: no " + op_text + " of elements of type " + type_text);
  options.is_checked = check != 0;
  options.is_blocking = blocking != 0;
  options.style_osu = style == "osu";
  return options;
}

}  // namespace polyrail::perf
