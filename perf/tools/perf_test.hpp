// The perf tests there are, one for each program, and the function that is their main().
#pragma once

#include <string>
#include <string_view>

#include <polyrail/types.hpp>

namespace polyrail::perf {

struct PerfTest {
  std::string_view name;  // of the program, without "_perf"
  Collective collective = Collective::kAllReduce;
  bool has_uneven = false;  // takes --uneven
  bool has_skew = false;    // takes --skew and --seed: each pair of ranks has a count of its own
  std::string_view sentence;
  // No collective: each rank sends to the next and receives from the one before. Counts are those
  // of `collective`.
  bool is_message = false;

  bool reduces() const {
    return !is_message &&
           (collective == Collective::kAllReduce || collective == Collective::kReduce ||
            collective == Collective::kReduceScatter || collective == Collective::kScan);
  }
  std::string program() const { return std::string(name) + "_perf"; }
};

inline constexpr PerfTest kPerfTests[] = {
    {"all_reduce", Collective::kAllReduce, false, false, "Time and check of all-reduce"},
    {"all_gather", Collective::kAllGather, true, false, "Time and check of all-gather"},
    {"reduce_scatter", Collective::kReduceScatter, true, false, "Time and check of reduce-scatter"},
    {"broadcast", Collective::kBroadcast, false, false, "Time and check of broadcast"},
    {"reduce", Collective::kReduce, false, false, "Time and check of reduce"},
    {"alltoall", Collective::kAllToAll, false, false, "Time and check of all-to-all"},
    {"alltoallv", Collective::kAllToAll, false, true, "Time and check of uneven all-to-all"},
    {"gather", Collective::kGather, false, false, "Time and check of gather"},
    {"scatter", Collective::kScatter, false, false, "Time and check of scatter"},
    {"scan", Collective::kScan, false, false, "Time and check of inclusive scan"},
    {"barrier", Collective::kBarrier, false, false, "Time and check of barrier"},
    {"sendrecv", Collective::kAllReduce, false, false,
     "Time and check of a send to the next rank beside a receive from the one before", true},
};

// Runs the test of this name, one of kPerfTests, as a program; returns its exit code: 0, 1 for
// wrong results or a failure, 2 for a wrong command line.
int run_perf_test(std::string_view name, int argc, char** argv);

}  // namespace polyrail::perf
