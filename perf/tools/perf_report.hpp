// The table and the JSON file of a perf test, in the form of nccl-tests.
#pragma once

#include <cstdio>
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
  std::string type;
  std::string op;
  int root = -1;
  Timing out_of_place;
  Timing in_place;
  double limit_busbw = 0;  // GB/s; 0: not known
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
  Report(const PerfOptions& options, std::string tool, int argc, char** argv);
  void begin(const std::vector<RankLine>& ranks);
  void add(const Row& row);
  // Prints the footer and writes the JSON file; false if results were wrong or the file cannot be
  // written.
  bool end();

 private:
  const PerfOptions& options_;
  std::string tool_;
  std::string command_;
  std::vector<RankLine> ranks_;
  std::vector<Row> rows_;
};

}  // namespace polyrail::perf
