// The timing loop that every peer shares, so that only the all-reduce under it differs. Like
// all_reduce_perf: float32 sum, out of place, every element checked, back-to-back calls.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace peers {

// One way to run all-reduce: what a peer's program fills in.
struct Peer {
  int rank = 0;
  int rank_count = 1;
  // output = sum of all ranks' inputs, count floats. Throws std::runtime_error on failure.
  std::function<void(const float* input, float* output, std::size_t count)> all_reduce;
  // Memory for one buffer, valid until the process ends. Empty: ordinary, page-aligned memory.
  std::function<float*(std::size_t bytes)> allocate;
};

struct SweepOptions {
  std::vector<std::size_t> sizes;  // bytes
  double budget_s = 0.15;          // of timed calls per size
  double warmup_s = 0.03;
  double repeat_s = 0;     // > 0: call the first size again and again for so long ...
  std::string until_file;  // ... or until rank 0 sees this file
};

void add_sweep_options(CLI::App& app, SweepOptions& options);

// Prints one line of JSON per size on rank 0; with repeat_s one per call of at least 1 ms, and a
// summary. The exit status: 1 if any element was wrong.
int run_sweep(const Peer& peer, const SweepOptions& options);

// Runs `body`, which may throw; the exit status of the program.
int guarded_main(const std::string& program, const std::function<int()>& body);

// An environment variable as a number, `fallback` if it is not set; throws if it is no number.
int environment_number(const char* name, int fallback);

}  // namespace peers
