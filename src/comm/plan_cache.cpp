#include "src/comm/plan_cache.hpp"

#include "src/plan/planner.hpp"

namespace polyrail {

PlanCache::PlanCache(int rank, Topology topology, std::string algorithm)
    : rank_(rank),
      topology_(std::move(topology)),
      algorithm_(std::move(algorithm)),
      entries_(kSlots) {}

std::size_t PlanCache::hash(const CollectiveSpec& spec) {
  std::uint64_t value = spec.count * 0x9e3779b97f4a7c15ull;
  value ^= (static_cast<std::uint64_t>(spec.type) << 8 | static_cast<std::uint64_t>(spec.op) << 4 |
            static_cast<std::uint64_t>(spec.is_in_place)) *
           0xc2b2ae3d27d4eb4full;
  return static_cast<std::size_t>(value ^ value >> 29);
}

Result<std::shared_ptr<const BoundPlan>> PlanCache::find_or_make(const CollectiveSpec& spec) {
  const std::size_t base = hash(spec) & (kSlots - 1);
  Entry* oldest = &entries_[base];
  for (std::size_t way = 0; way < kWays; ++way) {
    Entry& entry = entries_[(base + way) & (kSlots - 1)];
    if (entry.plan != nullptr && entry.spec == spec) {
      entry.last_use = ++use_;
      return entry.plan;
    }
    if (entry.plan == nullptr || entry.last_use < oldest->last_use) oldest = &entry;
  }
  PlanOptions options;
  options.algorithm = algorithm_;
  Result<Plan> plan = make_plan(topology_, spec, options);
  if (!plan.is_ok()) return plan.status();
  Result<BoundPlan> bound = bind_plan(plan.value(), rank_);
  if (!bound.is_ok()) return bound.status();
  oldest->spec = spec;
  oldest->plan = std::make_shared<const BoundPlan>(std::move(bound).value());
  oldest->last_use = ++use_;
  return oldest->plan;
}

}  // namespace polyrail
