// A plain ring all-reduce over TCP or Multipath TCP sockets: what a careful program without a
// library would do, and with the true rates as shares the oracle that others are held against.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace peers {

struct RingOptions {
  int rank = 0;
  int rank_count = 1;
  // addresses[rank][rail]; a single rail for Multipath TCP, whose kernel finds the others.
  std::vector<std::vector<std::string>> addresses;
  std::vector<double> shares;  // of each rail, the fastest first
  int port = 0;                // and the following ones, one per rail
  bool is_multipath = false;
  int extra_subflows = 0;  // wait until Multipath TCP has so many besides the first
  bool is_spinning = false;
};

class Ring {
 public:
  // Connects to both neighbours on every rail, or throws after 20 s with what was missing.
  explicit Ring(const RingOptions& options);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  void all_reduce(const float* input, float* output, std::size_t count);

 private:
  struct Rail {
    int to_next = -1;
    int from_previous = -1;
    double share = 1;
  };
  struct Range {
    std::size_t begin = 0, end = 0;  // elements
  };

  void connect_rail(std::size_t rail);
  void wait_for_subflows(int socket) const;
  Range chunk(int index, std::size_t count) const;
  std::vector<Range> split(Range whole) const;
  void step(const float* send_from, Range sent, float* receive_to, Range received,
            const float* added_to, float* sum_to);

  RingOptions options_;
  std::vector<Rail> rails_;
  std::vector<int> listeners_;  // stay open: Multipath TCP accepts further subflows through them
  std::vector<float> scratch_;
};

}  // namespace peers
