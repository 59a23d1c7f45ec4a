#include "src/plan/draft.hpp"

#include <algorithm>
#include <numeric>

#include "src/plan/blocks.hpp"

namespace polyrail {
namespace {

double message_count(const CostShape& shape) {
  double messages = 0;
  for (const CostShape::Load& load : shape.loads) messages += load.message_count;
  return messages;
}

}  // namespace

Drafter::Drafter(const Topology& topology, const CollectiveSpec& spec, const PlanOptions& options,
                 const std::vector<NamedRoute>& routes)
    : topology_(topology), spec_(spec), options_(options), routes_(routes) {
  rank_counts_.assign(topology.hosts.size(), 0);
  for (int rank = 0; rank < topology.rank_count(); ++rank) {
    int& count = rank_counts_[topology.rank_hosts[rank]];
    if (count++ == 0) host_ranks_.push_back(rank);
  }
  host_count_ = static_cast<int>(host_ranks_.size());
  for (const int rank : host_ranks_) {
    const int count = rank_counts_[topology.rank_hosts[rank]];
    most_ranks_ = std::max(most_ranks_, count);
    least_ranks_ = least_ranks_ == 0 ? count : std::min(least_ranks_, count);
  }
  for (const NamedRoute& route : routes) costs_.push_back(route_costs(topology, route));
}

Draft Drafter::draft(const Algorithm& algorithm) const {
  Draft draft;
  draft.recipe = recipe_of(algorithm);
  if (spec_.collective == Collective::kBarrier) {
    draft.recipe.strands.push_back(quickest_strand());
    return draft;
  }
  if (algorithm.generator->is_doubling) {
    if (spec_.bytes() > 0) {
      draft.recipe.strands.push_back(quickest_strand());
      draft.recipe.strands.back().range = {0, spec_.bytes()};
    }
    draft.verdicts.assign(routes_.size(), Split::Verdict::kUsed);
    return draft;
  }
  if (algorithm.generator->generate == nullptr && !has_blocks(spec_.collective)) {
    draft_moves(algorithm, draft);
    return draft;
  }
  const std::vector<Range> ranges = split_over_routes(algorithm, draft);
  for (std::size_t r = 0; r < routes_.size(); ++r) {
    if (ranges[r].bytes == 0) continue;
    std::vector<double> rates;
    for (const RailCost& cost : crossing_costs(algorithm, costs_[r])) {
      rates.push_back(cost.bytes_per_s());
    }
    draft.recipe.strands.push_back(
        {routes_[r].plane, ranges[r], routes_[r].route, weights(algorithm, rates)});
  }
  return draft;
}

// The route whose slowest rank has the least latency.
Strand Drafter::quickest_strand() const {
  std::size_t best = 0;
  const auto latency_us = [&](std::size_t route) {
    double most = 0;
    for (const RailCost& cost : costs_[route]) most = std::max(most, cost.latency_us());
    return most;
  };
  for (std::size_t r = 1; r < routes_.size(); ++r) {
    if (latency_us(r) < latency_us(best)) best = r;
  }
  return {routes_[best].plane, {}, routes_[best].route, {}};
}

void Drafter::draft_moves(const Algorithm& algorithm, Draft& draft) const {
  draft.verdicts.assign(routes_.size(), Split::Verdict::kUsed);
  std::vector<CostCurve> curves;
  for (std::size_t r = 0; r < routes_.size(); ++r) {
    curves.push_back(generator_curve(*algorithm.generator, spec_.collective, costs_[r]));
    draft.recipe.strands.push_back({routes_[r].plane, {}, routes_[r].route, {}});
  }
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t count : spec_.counts) sizes.push_back(count * size_bytes(spec_.type));
  if (sizes.empty()) sizes.push_back(spec_.count * size_bytes(spec_.type));
  for (const std::uint64_t bytes : sizes) {
    if (bytes == 0 || draft.recipe.pair_splits.contains(bytes)) continue;
    std::vector<double> shares(routes_.size(), 1.0);
    if (options_.split_by_measurement) {
      const double extra_rail_us = 2 * costs_.front().front().message_us();
      Split split_shares = split(curves, bytes, extra_rail_us);
      shares = std::move(split_shares.bytes);
      draft.verdicts = std::move(split_shares.verdicts);
    }
    std::vector<std::uint64_t>& of_size = draft.recipe.pair_splits[bytes];
    for (const Range& range : cut_by_weight({0, bytes}, shares, size_bytes(spec_.type))) {
      of_size.push_back(range.bytes);
    }
  }
}

Draft Drafter::draft_mixed(int route_count) const {
  const Algorithm algorithm{most_ranks_ > 1 ? Algorithm::Levels::kTwo : Algorithm::Levels::kOne,
                            find_generator(spec_.collective, "direct")};
  Draft draft;
  draft.recipe = recipe_of(algorithm);
  draft.verdicts.assign(routes_.size(), Split::Verdict::kUsed);
  std::vector<double> rates;  // of all rails that lead to another host
  for (const int rank : host_ranks_) {
    double sum = 0;
    for (const Rail& rail : topology_.host_of(rank).rails) {
      const bool leads_away = std::any_of(host_ranks_.begin(), host_ranks_.end(), [&](int peer) {
        return peer != rank && topology_.joins(rail.plane, rank, peer);
      });
      if (leads_away) sum += RailCost(rail).bytes_per_s();
    }
    rates.push_back(sum);
  }
  const std::vector<double> parts = weights(algorithm, rates);
  const std::vector<Range> ranges =
      cut_evenly({0, spec_.bytes()}, route_count, size_bytes(spec_.type));
  std::size_t share = 0;
  for (Route& route : mixed_routes(topology_, routes_.front().route, parts, route_count)) {
    if (ranges[share].bytes > 0) {
      draft.recipe.strands.push_back({-1, ranges[share], std::move(route), parts});
    }
    ++share;
  }
  return draft;
}

double Drafter::step_count(const Recipe& recipe, int chunk_count) const {
  const bool is_flat = recipe.algorithm.levels == Algorithm::Levels::kOne;
  const int n = is_flat ? spec_.rank_count : host_count_;
  double steps = 3 * n * message_count(recipe.algorithm.generator->cost_shape(spec_.collective, n));
  if (recipe.algorithm.levels == Algorithm::Levels::kTwo) steps *= most_ranks_;
  if (!is_flat) steps += 5.0 * spec_.rank_count * most_ranks_;
  return steps * chunk_count * static_cast<double>(recipe.strands.size());
}

// Ranks of a host stay together, so that few hops cross hosts. A tree has its slow hosts last,
// where they are leaves.
Recipe Drafter::recipe_of(const Algorithm& algorithm) const {
  Recipe recipe;
  recipe.algorithm = algorithm;
  recipe.hosts = topology_.rank_hosts;
  recipe.ranks.resize(spec_.rank_count);
  std::iota(recipe.ranks.begin(), recipe.ranks.end(), 0);
  if (spec_.is_ordered || spec_.wire_type || is_scan(spec_.collective)) return recipe;
  const auto rate = [&](int rank) {
    double sum = 0;
    for (const std::vector<RailCost>& costs : costs_) sum += costs[rank].bytes_per_s();
    return sum;
  };
  const bool is_by_rate = algorithm.generator->wants_mirror;
  std::stable_sort(recipe.ranks.begin(), recipe.ranks.end(), [&](int a, int b) {
    if (is_by_rate && rate(a) != rate(b)) return rate(a) > rate(b);
    return topology_.rank_hosts[a] < topology_.rank_hosts[b];
  });
  return recipe;
}

// What the members of the part that crosses hosts pay; one for each host if there are levels.
std::vector<RailCost> Drafter::crossing_costs(const Algorithm& algorithm,
                                              const std::vector<RailCost>& costs) const {
  if (algorithm.levels == Algorithm::Levels::kOne) return costs;
  std::vector<RailCost> by_host;
  for (const int rank : host_ranks_) by_host.push_back(costs[rank]);
  return by_host;
}

std::vector<Range> Drafter::split_over_routes(const Algorithm& algorithm, Draft& draft) const {
  const Range whole{0, spec_.bytes()};
  const std::uint64_t element = size_bytes(spec_.type);
  draft.verdicts.assign(routes_.size(), Split::Verdict::kUsed);
  if (spec_.bytes() == 0) return std::vector<Range>(routes_.size());
  if (!options_.split_by_measurement) {
    return cut_evenly(whole, static_cast<int>(routes_.size()), element);
  }
  std::vector<CostCurve> curves;
  double extra_rail_us = 0;
  for (const std::vector<RailCost>& costs : costs_) {
    const std::vector<RailCost> crossing = crossing_costs(algorithm, costs);
    curves.push_back(generator_curve(*algorithm.generator, spec_.collective, crossing));
    // All its messages are to be posted and taken in once more.
    const double messages = message_count(
        algorithm.generator->cost_shape(spec_.collective, static_cast<int>(crossing.size())));
    extra_rail_us = std::max(extra_rail_us, 2 * messages * costs.front().message_us());
  }
  Split shares = split(curves, spec_.bytes(), extra_rail_us);
  draft.verdicts = std::move(shares.verdicts);
  draft.estimate_us = shares.time_us;
  return cut_by_weight(whole, shares.bytes, element);
}

// By rank, for generators that want it; `rates`: by rank, or by host if there are levels.
std::vector<double> Drafter::weights(const Algorithm& algorithm,
                                     const std::vector<double>& rates) const {
  if (has_blocks(spec_.collective)) return block_weights(algorithm, rates);
  if (!algorithm.generator->wants_weights || !options_.split_by_measurement) return {};
  if (algorithm.levels == Algorithm::Levels::kOne && most_ranks_ > 1) return {};
  const std::vector<double> by_host = fitting_weights(rates);
  if (by_host.empty()) return {};
  std::vector<double> by_rank(spec_.rank_count);
  for (int rank = 0; rank < spec_.rank_count; ++rank) {
    const int host = topology_.rank_hosts[rank];
    for (std::size_t place = 0; place < host_ranks_.size(); ++place) {
      // A host's ranks share its part.
      if (topology_.rank_hosts[host_ranks_[place]] != host) continue;
      by_rank[rank] = by_host[place] / rank_counts_[host];
    }
  }
  return by_rank;
}

// By rank, for relays; `rates` as in weights().
std::vector<double> Drafter::block_weights(const Algorithm& algorithm,
                                           const std::vector<double>& rates) const {
  if (!algorithm.generator->wants_weights || spec_.bytes() == 0) return {};
  const bool is_by_host = algorithm.levels != Algorithm::Levels::kOne;
  if (!is_by_host && most_ranks_ > 1 && host_count_ > 1) return {};
  std::vector<double> own(rates.size(), 0.0);
  const auto place_of = [&](int rank) {
    if (!is_by_host) return static_cast<std::size_t>(rank);
    std::size_t place = 0;
    while (topology_.rank_hosts[host_ranks_[place]] != topology_.rank_hosts[rank]) ++place;
    return place;
  };
  for (const Block& block : blocks_of(spec_)) {
    own[place_of(block.root)] +=
        static_cast<double>(block.range.bytes) / static_cast<double>(spec_.bytes());
  }
  const std::vector<double> by_place = relay_weights(rates, own);
  if (by_place.empty()) return {};
  std::vector<double> by_rank(spec_.rank_count);
  for (int rank = 0; rank < spec_.rank_count; ++rank) {
    by_rank[rank] = by_place[place_of(rank)];
    if (is_by_host) by_rank[rank] /= rank_counts_[topology_.rank_hosts[rank]];
  }
  return by_rank;
}

}  // namespace polyrail
