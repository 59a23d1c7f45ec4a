// What collectives should give, written down from their definitions: buffers with inputs that any
// rank can compute, a call over them, and the check of what came out.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <polyrail/polyrail.hpp>

namespace polyrail::testing {

// One call as all ranks see it. counts: of uneven forms, by rank; all_to_all: [from * n + to].
struct Case {
  Collective collective = Collective::kAllReduce;
  std::uint64_t count = 0;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  bool is_in_place = false;
  std::vector<std::uint64_t> counts{};
  std::size_t shift_bytes = 0;  // of the buffers, from an aligned address

  std::string text() const {
    std::string all = std::string(name(collective)) + " of " + std::to_string(count) + ", " +
                      std::string(name(op)) + ", root " + std::to_string(root) +
                      (is_in_place ? ", in place" : "");
    for (const std::uint64_t one : counts) all += " " + std::to_string(one);
    return all;
  }
};

// Element i of a rank's input: small, so that sums and products are exact in every type.
inline int input_value(int rank, std::uint64_t i, std::uint64_t round) {
  return static_cast<int>((i * 7 + static_cast<std::uint64_t>(rank) * 3 + round) % 3);
}

template <typename T>
class CaseRun {
 public:
  CaseRun(const Case& c, int rank, int n, std::uint64_t round)
      : case_(c), rank_(rank), n_(n), round_(round) {
    const bool is_root = rank == c.root;
    in_count_ = input_count(rank);
    switch (c.collective) {
      case Collective::kAllReduce:
      case Collective::kScan:
      case Collective::kExclusiveScan:
      case Collective::kBroadcast:
        out_count_ = c.count;
        break;
      case Collective::kReduce:
        out_count_ = is_root ? c.count : 0;
        break;
      case Collective::kReduceScatter:
      case Collective::kScatter:
        out_count_ = part(rank);
        out_base_ = c.collective == Collective::kReduceScatter || is_root ? begin(rank) : 0;
        break;
      case Collective::kAllGather:
        out_count_ = begin(n);
        in_base_ = begin(rank);
        break;
      case Collective::kGather:
        out_count_ = is_root ? begin(n) : 0;
        in_base_ = is_root ? begin(rank) : 0;
        break;
      case Collective::kAllToAll:
        for (int from = 0; from < n; ++from) out_count_ += pair(from, rank);
        break;
      case Collective::kBarrier:
        break;
    }
    // Where a rank has no input or no output there is nothing to be in place with.
    is_in_place_ = c.is_in_place && in_count_ > 0 && out_count_ > 0;
    const std::uint64_t in_end = in_base_ + in_count_;
    const std::uint64_t out_end = out_base_ + out_count_;
    memory_.resize((is_in_place_ ? std::max(in_end, out_end) : in_end) * sizeof(T) + kSlack);
    other_.resize(out_end * sizeof(T) + kSlack, std::byte{0xee});
    for (std::uint64_t i = 0; i < in_count_; ++i) {
      const T value = static_cast<T>(input_value(rank, i, round));
      std::memcpy(input_address() + i * sizeof(T), &value, sizeof value);
    }
  }

  Call call() {
    Call call;
    call.collective = case_.collective;
    call.input = in_count_ > 0 ? input_address() : nullptr;
    call.output = out_count_ > 0 ? output_address() : nullptr;
    call.count = case_.count;
    call.type = DataTypeOf<T>::value;
    call.reduction = case_.op;
    call.root = case_.root;
    if (case_.counts.empty()) return call;
    call.is_uneven = true;
    if (case_.collective == Collective::kAllToAll) {
      for (int peer = 0; peer < n_; ++peer) {
        sent_.push_back(pair(rank_, peer));
        received_.push_back(pair(peer, rank_));
      }
      call.counts = sent_;
      call.receive_counts = received_;
    } else {
      call.counts = case_.counts;
      // Who is not the root may know only its own.
      const bool is_exchange =
          case_.collective == Collective::kGather || case_.collective == Collective::kScatter;
      if (is_exchange && rank_ != case_.root) {
        call.counts = {};
        call.count = part(rank_);
      }
    }
    return call;
  }

  void check() {
    if (case_.collective == Collective::kExclusiveScan && rank_ == 0) return;
    for (std::uint64_t i = 0; i < out_count_; ++i) {
      T got;
      std::memcpy(&got, output_address() + i * sizeof(T), sizeof got);
      ASSERT_EQ(got, expected(i)) << case_.text() << ", element " << i << " on rank " << rank_
                                  << " of " << n_ << ", round " << round_;
    }
    if (is_in_place_) return;
    for (std::uint64_t i = 0; i < in_count_; ++i) {
      T kept;
      std::memcpy(&kept, input_address() + i * sizeof(T), sizeof kept);
      ASSERT_EQ(kept, static_cast<T>(input_value(rank_, i, round_)))
          << case_.text() << ": input changed on rank " << rank_;
    }
    const std::size_t end =
        static_cast<std::size_t>(output_address() - other_.data()) + out_count_ * sizeof(T);
    for (std::size_t i = end; i < other_.size(); ++i) {
      ASSERT_EQ(other_[i], std::byte{0xee}) << case_.text() << ": wrote behind the output";
    }
  }

 private:
  static constexpr std::size_t kSlack = 64;

  std::uint64_t part(int rank) const {
    return case_.counts.empty() ? case_.count : case_.counts[rank];
  }
  std::uint64_t begin(int rank) const {
    std::uint64_t sum = 0;
    for (int before = 0; before < rank; ++before) sum += part(before);
    return sum;
  }
  std::uint64_t pair(int from, int to) const {
    return case_.counts.empty() ? case_.count : case_.counts[from * n_ + to];
  }
  std::uint64_t input_count(int rank) const {
    switch (case_.collective) {
      case Collective::kAllReduce:
      case Collective::kReduce:
      case Collective::kScan:
      case Collective::kExclusiveScan:
        return case_.count;
      case Collective::kBroadcast:
        return rank == case_.root ? case_.count : 0;
      case Collective::kReduceScatter:
        return begin(n_);
      case Collective::kScatter:
        return rank == case_.root ? begin(n_) : 0;
      case Collective::kAllGather:
      case Collective::kGather:
        return part(rank);
      case Collective::kAllToAll: {
        std::uint64_t sum = 0;
        for (int to = 0; to < n_; ++to) sum += pair(rank, to);
        return sum;
      }
      case Collective::kBarrier:
        break;
    }
    return 0;
  }

  std::byte* input_address() { return memory_.data() + case_.shift_bytes + in_base_ * sizeof(T); }
  std::byte* output_address() {
    return (is_in_place_ ? memory_.data() + out_base_ * sizeof(T) : other_.data()) +
           case_.shift_bytes;
  }

  T reduced(int first, int end, std::uint64_t i) const {
    int value = input_value(first, i, round_);
    for (int rank = first + 1; rank < end; ++rank) {
      const int next = input_value(rank, i, round_);
      switch (case_.op) {
        case ReduceOp::kProd:
          value *= next;
          break;
        case ReduceOp::kMax:
          value = std::max(value, next);
          break;
        case ReduceOp::kMin:
          value = std::min(value, next);
          break;
        default:
          value += next;
      }
    }
    if (case_.op == ReduceOp::kAvg) return static_cast<T>(value) / static_cast<T>(n_);
    return static_cast<T>(value);
  }

  T expected(std::uint64_t i) const {
    switch (case_.collective) {
      case Collective::kAllReduce:
      case Collective::kReduce:
        return reduced(0, n_, i);
      case Collective::kReduceScatter:
        return reduced(0, n_, begin(rank_) + i);
      case Collective::kScan:
        return reduced(0, rank_ + 1, i);
      case Collective::kExclusiveScan:
        return reduced(0, rank_, i);
      case Collective::kBroadcast:
        return static_cast<T>(input_value(case_.root, i, round_));
      case Collective::kScatter:
        return static_cast<T>(input_value(case_.root, begin(rank_) + i, round_));
      case Collective::kAllGather:
      case Collective::kGather: {
        int from = 0;
        while (i >= begin(from + 1)) ++from;
        return static_cast<T>(input_value(from, i - begin(from), round_));
      }
      case Collective::kAllToAll: {
        std::uint64_t before = 0;
        int from = 0;
        while (i >= before + pair(from, rank_)) before += pair(from++, rank_);
        std::uint64_t offset = i - before;
        for (int to = 0; to < rank_; ++to) offset += pair(from, to);
        return static_cast<T>(input_value(from, offset, round_));
      }
      case Collective::kBarrier:
        break;
    }
    return T{};
  }

  const Case case_;
  const int rank_;
  const int n_;
  const std::uint64_t round_;
  bool is_in_place_ = false;
  std::uint64_t in_count_ = 0;
  std::uint64_t out_count_ = 0;
  std::uint64_t in_base_ = 0;  // in place: of the shorter buffer within the longer one
  std::uint64_t out_base_ = 0;
  std::vector<std::byte> memory_;
  std::vector<std::byte> other_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> received_;
};

// Runs the case a few times, so that what an earlier run left behind would show.
template <typename T>
void run_case(Communicator& communicator, const Case& c, std::uint64_t rounds = 2) {
  for (std::uint64_t round = 0; round < rounds; ++round) {
    CaseRun<T> run(c, communicator.rank(), communicator.rank_count(), round);
    const Status status = communicator.run(run.call());
    ASSERT_TRUE(status.is_ok()) << c.text() << ": " << status.message();
    run.check();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace polyrail::testing
