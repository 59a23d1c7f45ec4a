// Options of the perf tests, those of nccl-tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <polyrail/types.hpp>

#include "perf/tools/perf_test.hpp"

namespace polyrail::perf {

struct PerfOptions {
  int threads = 1;  // ranks as threads of this process
  std::uint64_t min_bytes = 32 << 20;
  std::uint64_t max_bytes = 32 << 20;
  std::uint64_t step_bytes = 1 << 20;
  double step_factor = 0;  // > 1: sizes grow by this factor
  int iterations = 20;
  int warmup_iterations = 1;
  int aggregated = 1;                            // calls per timed iteration
  int cycles = 1;                                // 0: until interrupted
  std::vector<ReduceOp> ops = {ReduceOp::kSum};  // kSum alone where nothing is reduced
  std::vector<DataType> types = {DataType::kFloat32};
  int root = 0;            // -1: each rank in turn
  double uneven = -1;      // fraction of the vector that rank 0 holds; < 0: all hold the same
  double skew = 1;         // 0: even counts; the larger, the more they differ
  std::uint64_t seed = 1;  // of random counts
  bool is_checked = true;
  int average = 1;          // 0 rank 0, 1 average, 2 minimum, 3 maximum
  bool is_blocking = true;  // -z 0: asynchronous calls, one wait per iteration
  bool reports_cpu_time = false;
  int local_register = 0;  // 1, 2: buffers from mem_alloc
  bool has_timestamps = false;
  std::string json_file;
  int timeout_s = 0;
  std::uint64_t unalign = 0;  // elements by which buffers are shifted
  bool has_iteration_times = false;
  int skipped_iterations = 0;
  bool style_osu = false;
  bool explains = false;
  bool shows_rails = false;
};

// Parses the command line; on --help or an error prints and ends the process (0 or 2).
PerfOptions parse_perf_options(int argc, char** argv, const PerfTest& test);
// At most five characters, for the table and for -o: "sum", "land", "mxloc".
std::string_view short_name(ReduceOp op);
// "8", "64K", "1.5M", "2G": powers of 1024.
bool parse_size(const std::string& text, std::uint64_t& bytes);

}  // namespace polyrail::perf
