// PlanCache: bound plans by call. Looking one up allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <polyrail/status.hpp>

#include "src/exec/bound_plan.hpp"
#include "src/plan/planner.hpp"
#include "topology/topology.hpp"

namespace polyrail {

class PlanCache {
 public:
  PlanCache(int rank, Topology topology, std::string algorithm);

  // The plan of a call on the present topology; made and bound if it is new.
  Result<std::shared_ptr<const BoundPlan>> find_or_make(const CollectiveSpec& spec);
  const Topology& topology() const { return topology_; }
  // The algorithm that was asked for, if the collective has it.
  PlanOptions options_for(const CollectiveSpec& spec) const;

 private:
  struct Entry {
    CollectiveSpec spec;
    std::shared_ptr<const BoundPlan> plan;  // shared with operations under way
    std::uint64_t last_use = 0;
  };
  static std::size_t hash(const CollectiveSpec& spec);
  static constexpr std::size_t kSlots = 1024;  // a power of two
  static constexpr std::size_t kWays = 4;      // places where a call may stand

  int rank_;
  Topology topology_;
  std::string algorithm_;
  std::vector<Entry> entries_;
  std::uint64_t use_ = 0;
};

}  // namespace polyrail
