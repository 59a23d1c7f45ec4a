// The collectives that are compared: how a size becomes a call, and which results are right.
// Float32, sums, root 0; parts are even and follow one another by rank.
#pragma once

#include <cstddef>
#include <string>

namespace peers {

enum class Collective {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,  // in place
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
};

inline constexpr Collective kAllCollectives[] = {Collective::kAllReduce,     Collective::kAllGather,
                                                 Collective::kReduceScatter, Collective::kBroadcast,
                                                 Collective::kReduce,        Collective::kAllToAll,
                                                 Collective::kGather,        Collective::kScatter};

std::string name(Collective collective);  // "all_reduce"

// One rank's view of a call. As in nccl-tests its size is that of the vector, or of the parts of
// all ranks together; a size that the ranks cannot share evenly is rounded up.
class CallShape {
 public:
  CallShape(Collective collective, std::size_t bytes, int rank, int rank_count);

  // What libraries call count: elements of the vector, or of one rank's part.
  std::size_t count() const { return count_; }
  // Elements that a buffer needs to be input or output on any rank.
  std::size_t buffer_count() const;
  // Elements that this rank receives, 0 if it is not the root of what only a root receives.
  std::size_t output_count() const;
  // What the output holds afterwards, if every rank's input holds input_value().
  float expected_value(std::size_t index) const;

 private:
  Collective collective_;
  std::size_t count_;
  int rank_;
  int rank_count_;
};

// A whole number that tells ranks and neighbouring elements apart; sums are exact in any order.
float input_value(std::size_t index, int rank);

}  // namespace peers
