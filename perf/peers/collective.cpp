#include "perf/peers/collective.hpp"

namespace peers {
namespace {

constexpr std::size_t kPeriod = 127;  // a prime, so that parts do not look alike

bool has_parts(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kReduce:
      return false;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
      return true;
  }
  return false;
}

float sum_of_inputs(std::size_t index, int rank_count) {
  const float ranks = static_cast<float>(rank_count);
  return ranks * input_value(index, 0) + kPeriod * ranks * (ranks - 1) / 2;
}

}  // namespace

std::string name(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kReduce:
      return "reduce";
    case Collective::kAllToAll:
      return "all_to_all";
    case Collective::kGather:
      return "gather";
    case Collective::kScatter:
      return "scatter";
  }
  return "?";
}

float input_value(std::size_t index, int rank) {
  return static_cast<float>(index % kPeriod + kPeriod * static_cast<std::size_t>(rank));
}

CallShape::CallShape(Collective collective, std::size_t bytes, int rank, int rank_count)
    : collective_(collective), count_(bytes / sizeof(float)), rank_(rank), rank_count_(rank_count) {
  const auto ranks = static_cast<std::size_t>(rank_count);
  if (has_parts(collective)) count_ = (count_ + ranks - 1) / ranks;
}

std::size_t CallShape::buffer_count() const {
  return has_parts(collective_) ? count_ * static_cast<std::size_t>(rank_count_) : count_;
}

std::size_t CallShape::output_count() const {
  switch (collective_) {
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return count_;
    case Collective::kReduce:
      return rank_ == 0 ? count_ : 0;
    case Collective::kAllGather:
    case Collective::kAllToAll:
      return buffer_count();
    case Collective::kGather:
      return rank_ == 0 ? buffer_count() : 0;
  }
  return 0;
}

float CallShape::expected_value(std::size_t index) const {
  const std::size_t own_part = static_cast<std::size_t>(rank_) * count_;
  const std::size_t in_part = index % count_;
  const auto sender = static_cast<int>(index / count_);
  switch (collective_) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return sum_of_inputs(index, rank_count_);
    case Collective::kReduceScatter:
      return sum_of_inputs(own_part + index, rank_count_);
    case Collective::kBroadcast:
      return input_value(index, 0);
    case Collective::kScatter:
      return input_value(own_part + index, 0);
    case Collective::kAllGather:
    case Collective::kGather:
      return input_value(in_part, sender);
    case Collective::kAllToAll:
      return input_value(own_part + in_part, sender);
  }
  return 0;
}

}  // namespace peers
