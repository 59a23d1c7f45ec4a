// PerfCase: one call of a perf test as all ranks see it: counts, places, inputs, what comes out.
#pragma once

#include <cstdint>
#include <vector>

#include <polyrail/call.hpp>

#include "perf/tools/perf_options.hpp"
#include "perf/tools/perf_test.hpp"
#include "src/plan/layout.hpp"

namespace polyrail::perf {

class PerfCase {
 public:
  // A vector of at most `bytes`: as large as whole elements and, unless uneven, equal parts allow.
  PerfCase(const PerfTest& test, const PerfOptions& options, DataType type, ReduceOp op, int root,
           std::uint64_t bytes, int rank, int rank_count);
  PerfCase(const PerfCase&) = delete;
  PerfCase& operator=(const PerfCase&) = delete;

  // As nccl-tests define them: bytes of the whole vector, elements of one part (of uneven ones the
  // mean), and the bus bandwidth by the algorithm's.
  std::uint64_t bytes() const;
  std::uint64_t count() const;
  double bus_factor() const;
  // What one rank brings along, and each of its peers gets of it: the size of OSU's benchmarks.
  std::uint64_t part_bytes() const { return count() * size_bytes(spec_.type); }

  // Elements that input and output need, also when they are one buffer.
  std::uint64_t buffer_count() const;
  // Borrows this case. In place: input == output.
  Call call(void* input, void* output) const;
  // Overwrites what an earlier call left in the output.
  void erase(void* output) const;
  // What fits to it: fills in this rank's input, and counts the wrong elements of its output.
  void fill(void* input, bool is_in_place, std::uint64_t seed) const;
  std::uint64_t count_wrong_output(const void* output, bool is_in_place, std::uint64_t seed) const;

 private:
  std::uint64_t input_base(bool is_in_place) const;
  std::uint64_t output_base(bool is_in_place) const;

  const bool is_message_;
  CollectiveSpec spec_;
  Layout layout_;
  int rank_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> received_;
};

}  // namespace polyrail::perf
