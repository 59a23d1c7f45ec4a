// StepGraph: the steps of all ranks with one number each, and what must be done before what.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/plan/plan.hpp"

namespace polyrail {

// In place a step may write where a put of the same rank still reads, as far as the put is done:
// the executor then follows the put byte by byte, as it follows what lands. The index of that put,
// if step `index` has one and streams an operand; else kFollowsNone.
inline constexpr std::uint32_t kFollowsNone = ~std::uint32_t{0};
std::uint32_t followed_put(const CollectiveSpec& spec, const Schedule& schedule,
                           std::uint32_t index);

// Borrows the plan, which must outlive it and pass check_shape().
class StepGraph final {
 public:
  using Id = std::uint32_t;

  explicit StepGraph(const Plan& plan);

  std::size_t size() const { return steps_.size(); }
  int rank_count() const { return static_cast<int>(first_.size()) - 1; }
  Id id(int rank, std::uint32_t index) const { return first_[rank] + index; }
  // The ids of a rank's steps are first(rank) .. first(rank + 1) - 1.
  Id first(int rank) const { return first_[rank]; }
  const Step& step(Id id) const { return *steps_[id]; }
  int rank(Id id) const { return ranks_[id]; }
  // The wait of a put, the put of a wait.
  Id partner(Id id) const { return partners_[id]; }
  // The put that a step follows; kFollowsNone.
  Id followed(Id id) const { return followed_[id]; }
  // What can be done only after `id`: steps that list it, and the wait of a put.
  std::span<const Id> next(Id id) const {
    return {next_.data() + next_begin_[id], next_.data() + next_begin_[id + 1]};
  }
  // An order in which every step follows what it needs. Shorter than size() if steps wait for one
  // another in a circle: those on and behind the circle are missing.
  std::vector<Id> order() const;

  // "rank 1, step 4 (reduce)"
  std::string describe(Id id) const;

 private:
  std::vector<Id> first_;  // by rank, and the end
  std::vector<const Step*> steps_;
  std::vector<int> ranks_;
  std::vector<Id> partners_;
  std::vector<Id> followed_;
  std::vector<std::uint32_t> next_begin_;
  std::vector<Id> next_;
};

// True if the executor may run `step` while the bytes of `wait` still land: the wait's target is
// one of the operands.
bool can_stream(const Step& step, const Step& wait);

}  // namespace polyrail
