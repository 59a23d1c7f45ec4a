// The timing loop that every peer shares, so that only the collective under it differs. Like
// nccl-tests: float32 sum, out of place, every element checked, back-to-back calls.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "perf/peers/collective.hpp"

namespace CLI {
class App;
}

namespace peers {

// One way to run collectives: what a peer's program fills in. Both throw std::runtime_error.
struct Peer {
  int rank = 0;
  int rank_count = 1;
  // output = sum of all ranks' inputs, count floats. The loop's own agreements need it, too.
  std::function<void(const float* input, float* output, std::size_t count)> all_reduce;
  // The other collectives, with CallShape's count. Of broadcast, input and output are one buffer;
  // otherwise buffers are ordinary memory on every rank, used or not. Empty: there are none.
  std::function<void(Collective collective, const float* input, float* output, std::size_t count)>
      other;
  // Memory for one buffer, valid until the process ends. Empty: ordinary, page-aligned memory.
  std::function<float*(std::size_t bytes)> allocate;
};

struct SweepOptions {
  Collective collective = Collective::kAllReduce;
  std::vector<std::size_t> sizes;  // bytes
  double budget_s = 0.15;          // of timed calls per size
  double warmup_s = 0.03;
  double repeat_s = 0;     // > 0: all-reduce of the first size again and again for so long ...
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
