// The table and the JSON file of a perf test, in the form of nccl-tests.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "perf/tools/perf_options.hpp"

namespace polyrail::perf {

struct Timing {
  double time_us = 0;
  double algbw = 0;  // GB/s, GB = 10^9 bytes
  double busbw = 0;
  std::int64_t wrong = -1;           // elements; -1: not checked
  std::vector<double> iteration_us;  // with -I
};

struct Row {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::uint64_t part_bytes = 0;  // of one rank: the size in the manner of OSU
  std::string type = "none";
  std::string op = "none";
  std::string short_op = "none";  // for the table
  int root = -1;                  // -1: has none
  Timing out_of_place;
  std::optional<Timing> in_place;  // not of a barrier, nor in OSU's style
  double limit_busbw = 0;          // GB/s; 0: not known
};

struct RankLine {
  int rank = 0;
  int pid = 0;
  std::string host;
  std::string rails;
};

// Used on rank 0 only.
class Report {
 public:
  Report(const PerfOptions& options, const PerfTest& test, int argc, char** argv);
  void begin(const std::vector<RankLine>& ranks);
  void add(const Row& row);
  // Prints the footer and writes the JSON file; false if results were wrong or the file cannot be
  // written.
  bool end();

 private:
  const PerfOptions& options_;
  const PerfTest& test_;
  std::string command_;
  std::vector<RankLine> ranks_;
  std::vector<Row> rows_;
};

}  // namespace polyrail::perf
