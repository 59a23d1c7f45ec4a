#include "src/comm/plan_cache.hpp"

#include "src/plan/compose.hpp"
#include "src/plan/planner.hpp"

namespace polyrail {

PlanCache::PlanCache(int rank, Topology topology, std::string algorithm)
    : rank_(rank),
      topology_(std::move(topology)),
      algorithm_(std::move(algorithm)),
      entries_(kSlots) {}

std::size_t PlanCache::hash(const CollectiveSpec& spec) {
  std::uint64_t value = spec.count * 0x9e3779b97f4a7c15ull;
  const auto mix = [&](std::uint64_t more) {
    value = (value ^ more) * 0xc2b2ae3d27d4eb4full;
    value ^= value >> 29;
  };
  mix(static_cast<std::uint64_t>(spec.collective) << 24 |
      static_cast<std::uint64_t>(spec.type) << 16 | static_cast<std::uint64_t>(spec.op) << 8 |
      static_cast<std::uint64_t>(spec.wire_type.value_or(spec.type)) << 32 |
      static_cast<std::uint64_t>(spec.is_ordered) << 1 |
      static_cast<std::uint64_t>(spec.is_in_place));
  mix(static_cast<std::uint64_t>(spec.root));
  for (const std::uint64_t count : spec.counts) mix(count);
  return static_cast<std::size_t>(value);
}

PlanOptions PlanCache::options_for(const CollectiveSpec& spec) const {
  PlanOptions options;
  if (algorithm_.empty()) return options;
  const Result<Algorithm> known = parse_algorithm(spec.collective, algorithm_);
  if (!known.is_ok()) {
    // Somebody must say that nobody knows it.
    if (spec.collective == Collective::kAllReduce) options.algorithm = algorithm_;
    return options;
  }
  const Algorithm& algorithm = known.value();
  const bool is_flat = algorithm.levels == Algorithm::Levels::kOne;
  const bool keeps_order = algorithm.generator->keeps_rank_order && is_flat;
  const bool fits_wire =
      !spec.wire_type || (algorithm.generator->generate_narrow != nullptr && is_flat);
  const bool is_power = (spec.rank_count & (spec.rank_count - 1)) == 0;
  const bool fits_ranks =
      !algorithm.generator->is_doubling || (is_power && has_parts(spec.collective) && is_flat);
  if ((!spec.is_ordered || keeps_order) && fits_wire && fits_ranks) {
    options.algorithm = algorithm_;
  }
  return options;
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
  Result<Plan> plan = make_plan(topology_, spec, options_for(spec));
  if (!plan.is_ok()) return plan.status();
  Result<BoundPlan> bound = bind_plan(plan.value(), rank_);
  if (!bound.is_ok()) return bound.status();
  oldest->spec = spec;
  oldest->plan = std::make_shared<const BoundPlan>(std::move(bound).value());
  oldest->last_use = ++use_;
  return oldest->plan;
}

}  // namespace polyrail
