#include "src/plan/study.hpp"

#include <algorithm>
#include <numeric>

#include "src/plan/simulate.hpp"

namespace polyrail {
namespace {

// Predictions are not exact: an algorithm must be this much faster to replace one that is preferred
// for its simplicity, and more chunks this much to replace fewer of the same algorithm.
constexpr double kOtherAlgorithm = 0.98;
constexpr double kMoreChunks = 0.995;
// Candidates of more steps than this are not tried: their planning takes too long.
constexpr double kMostSteps = 40000;
constexpr double kMostChunkedSteps = 10000;
constexpr double kLeastChunkBytes = 16 * 1024;
constexpr std::size_t kTriedWithChunks = 3;
constexpr int kChunkWindow = 4;

class Studying {
 public:
  Studying(const Topology& topology, const CollectiveSpec& spec, const PlanOptions& options)
      : topology_(topology), spec_(spec), options_(options) {}

  Result<Study> run() {
    Result<std::vector<NamedRoute>> routes = find_routes(topology_, spec_.bytes());
    if (!routes.is_ok()) return routes.status();
    study_.routes = std::move(routes).value();
    find_hosts();
    if (options_.algorithm.empty()) {
      try_all_algorithms();
    } else {
      Result<Algorithm> algorithm = parse_algorithm(options_.algorithm);
      if (!algorithm.is_ok()) return algorithm.status();
      if (algorithm.value().levels != Algorithm::Levels::kOne && host_count_ < 2) {
        return Status(StatusCode::kInvalidArgument,
                      "plan: " + options_.algorithm + " needs ranks on at least two hosts");
      }
      try_algorithm(algorithm.value());
    }
    try_chunks();
    choose();
    return std::move(study_);
  }

 private:
  void find_hosts() {
    rank_counts_.assign(topology_.hosts.size(), 0);
    for (const int host : topology_.rank_hosts) ++rank_counts_[host];
    for (const int count : rank_counts_) {
      host_count_ += count > 0 ? 1 : 0;
      most_ranks_ = std::max(most_ranks_, count);
      if (count > 0) least_ranks_ = least_ranks_ == 0 ? count : std::min(least_ranks_, count);
    }
    for (const NamedRoute& route : study_.routes) {
      costs_.push_back(route_costs(topology_, route));
    }
  }

  // Generators that differ from one another among so many ranks or hosts, preferred first. In place
  // a result must not overtake the acknowledgement of what it replaces: that costs direct most.
  static std::vector<const GeneratorInfo*> generators_among(int member_count, bool is_in_place) {
    std::vector<const GeneratorInfo*> infos;
    if (is_in_place) infos.push_back(find_generator("one_shot_staged"));
    if (member_count == 2) {
      infos.push_back(find_generator(is_in_place ? "ring" : "direct"));
      infos.push_back(find_generator(is_in_place ? "direct" : "ring"));
      return infos;
    }
    for (const GeneratorInfo& info : generators()) {
      if (info.name != "one_shot_staged") infos.push_back(&info);
    }
    return infos;
  }

  void try_all_algorithms() {
    for (const GeneratorInfo* info : generators_among(spec_.rank_count, spec_.is_in_place)) {
      try_algorithm({Algorithm::Levels::kOne, info});
    }
    if (host_count_ < 2 || most_ranks_ < 2) return;
    // What a host of several ranks takes across is a sum in scratch.
    const bool is_in_place = spec_.is_in_place && least_ranks_ == 1;
    for (const Algorithm::Levels levels : {Algorithm::Levels::kTwo, Algorithm::Levels::kLeaders}) {
      for (const GeneratorInfo* info : generators_among(host_count_, is_in_place)) {
        try_algorithm({levels, info});
      }
    }
  }

  // About how many steps the plan would have.
  double estimated_steps(const Algorithm& algorithm, int chunk_count) const {
    const bool is_flat = algorithm.levels == Algorithm::Levels::kOne;
    const int n = is_flat ? spec_.rank_count : host_count_;
    double messages = 0;
    for (const CostShape::Load& load : algorithm.generator->cost_shape(n).loads) {
      messages += load.message_count;
    }
    double per_chunk = messages * n * 3;
    if (algorithm.levels == Algorithm::Levels::kTwo) per_chunk *= most_ranks_;
    if (!is_flat) per_chunk += 5.0 * spec_.rank_count * most_ranks_;
    return per_chunk * chunk_count * static_cast<double>(study_.routes.size());
  }

  void try_algorithm(const Algorithm& algorithm) {
    if (estimated_steps(algorithm, 1) > kMostSteps && options_.algorithm.empty()) {
      study_.left_out.push_back(algorithm.name() + ": too many steps for so many ranks");
      return;
    }
    Candidate candidate;
    Recipe& recipe = candidate.recipe;
    recipe.algorithm = algorithm;
    recipe.hosts = topology_.rank_hosts;
    recipe.ranks = member_order(algorithm);
    const std::vector<Range> ranges = split_over_routes(algorithm, candidate.verdicts);
    for (std::size_t r = 0; r < study_.routes.size(); ++r) {
      if (ranges[r].bytes == 0) continue;
      const NamedRoute& route = study_.routes[r];
      recipe.strands.push_back(
          {route.plane, ranges[r], route.route, weights(algorithm, costs_[r])});
    }
    add(std::move(candidate));
  }

  // Ranks of a host stay together, so that few hops cross hosts. A tree has its slow hosts last,
  // where they are leaves.
  std::vector<int> member_order(const Algorithm& algorithm) const {
    std::vector<int> ranks(spec_.rank_count);
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto rate = [&](int rank) {
      double sum = 0;
      for (const std::vector<RailCost>& costs : costs_) sum += costs[rank].bytes_per_s();
      return sum;
    };
    const bool is_by_rate = algorithm.generator->wants_mirror;
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
      if (is_by_rate && rate(a) != rate(b)) return rate(a) > rate(b);
      return topology_.rank_hosts[a] < topology_.rank_hosts[b];
    });
    return ranks;
  }

  // What the members of the part that crosses hosts pay; one for each host if there are levels.
  std::vector<RailCost> crossing_costs(const Algorithm& algorithm,
                                       const std::vector<RailCost>& costs) const {
    if (algorithm.levels == Algorithm::Levels::kOne) return costs;
    std::vector<RailCost> by_host;
    std::vector<bool> is_seen(topology_.hosts.size(), false);
    for (int rank = 0; rank < spec_.rank_count; ++rank) {
      const int host = topology_.rank_hosts[rank];
      if (!is_seen[host]) by_host.push_back(costs[rank]);
      is_seen[host] = true;
    }
    return by_host;
  }

  std::vector<Range> split_over_routes(const Algorithm& algorithm,
                                       std::vector<Split::Verdict>& verdicts) const {
    const Range whole{0, spec_.bytes()};
    const std::uint64_t element = size_bytes(spec_.type);
    verdicts.assign(study_.routes.size(), Split::Verdict::kUsed);
    if (spec_.bytes() == 0) return std::vector<Range>(study_.routes.size());
    if (!options_.split_by_measurement) {
      return cut_evenly(whole, static_cast<int>(study_.routes.size()), element);
    }
    std::vector<CostCurve> curves;
    double extra_rail_us = 0;
    for (const std::vector<RailCost>& costs : costs_) {
      const std::vector<RailCost> crossing = crossing_costs(algorithm, costs);
      curves.push_back(generator_curve(*algorithm.generator, crossing));
      // All its messages are to be posted and taken in once more.
      double messages = 0;
      for (const CostShape::Load& load :
           algorithm.generator->cost_shape(static_cast<int>(crossing.size())).loads) {
        messages += load.message_count;
      }
      extra_rail_us = std::max(extra_rail_us, 2 * messages * costs.front().message_us());
    }
    Split shares = split(curves, spec_.bytes(), extra_rail_us);
    verdicts = std::move(shares.verdicts);
    return cut_by_weight(whole, shares.bytes, element);
  }

  std::vector<double> weights(const Algorithm& algorithm,
                              const std::vector<RailCost>& costs) const {
    if (!algorithm.generator->wants_weights || !options_.split_by_measurement) return {};
    if (algorithm.levels == Algorithm::Levels::kOne && most_ranks_ > 1) return {};
    std::vector<double> rates;
    for (const RailCost& cost : crossing_costs(algorithm, costs)) {
      rates.push_back(cost.bytes_per_s());
    }
    const std::vector<double> by_host = fitting_weights(rates);
    if (by_host.empty()) return {};
    // Hosts are numbered by their first rank; a host's ranks share its weight.
    std::vector<double> weights;
    std::vector<int> places(topology_.hosts.size(), -1);
    int place_count = 0;
    for (const int host : topology_.rank_hosts) {
      if (places[host] < 0) places[host] = place_count++;
      weights.push_back(by_host[places[host]] / rank_counts_[host]);
    }
    return weights;
  }

  void add(Candidate candidate) {
    const Plan plan = compose(spec_, topology_.plane_count(), candidate.recipe);
    candidate.predicted_us = simulate(plan, topology_).total_us;
    candidate.step_count = 0;
    for (const Schedule& schedule : plan.schedules) candidate.step_count += schedule.steps.size();
    study_.candidates.push_back(std::move(candidate));
  }

  // The most promising algorithms once more, with chunks that overlap their hops.
  void try_chunks() {
    std::vector<std::size_t> promising(study_.candidates.size());
    std::iota(promising.begin(), promising.end(), std::size_t{0});
    std::stable_sort(promising.begin(), promising.end(), [&](std::size_t a, std::size_t b) {
      return study_.candidates[a].predicted_us < study_.candidates[b].predicted_us;
    });
    promising.resize(std::min(promising.size(), kTriedWithChunks));
    for (const std::size_t p : promising) try_chunks_of(Candidate(study_.candidates[p]));
  }

  void try_chunks_of(const Candidate& whole) {
    auto least = static_cast<double>(spec_.bytes());
    bool is_unequal = false;
    for (const Strand& strand : whole.recipe.strands) {
      least = std::min(least, static_cast<double>(strand.range.bytes));
      if (!strand.weights.empty()) is_unequal = true;
    }
    Candidate chunked = whole;
    double best_us = whole.predicted_us;
    for (int chunk_count = 2; chunk_count <= (is_unequal ? 64 : 16); chunk_count *= 2) {
      if (least / (chunk_count * spec_.rank_count) < kLeastChunkBytes) break;
      if (estimated_steps(chunked.recipe.algorithm, chunk_count) > kMostChunkedSteps) break;
      chunked.recipe.chunk_count = chunk_count;
      // Unequal hosts are at different chunks at a time, and must wait for one another.
      chunked.recipe.window = is_unequal && chunk_count > kChunkWindow ? kChunkWindow : 0;
      add(chunked);
      const double us = study_.candidates.back().predicted_us;
      if (us > best_us * kMoreChunks && !is_unequal) break;
      best_us = std::min(best_us, us);
    }
  }

  // Of each algorithm the fewest chunks that are as good as its best; of these the first algorithm
  // that is as good as the best, as far as predictions can be trusted.
  void choose() {
    std::vector<std::size_t> bests;
    for (std::size_t c = 0; c < study_.candidates.size(); ++c) {
      const std::string name = study_.candidates[c].recipe.algorithm.name();
      const auto same = std::find_if(bests.begin(), bests.end(), [&](std::size_t b) {
        return study_.candidates[b].recipe.algorithm.name() == name;
      });
      if (same == bests.end()) {
        bests.push_back(c);
      } else if (predicted_us(c) < predicted_us(*same) * kMoreChunks) {
        *same = c;
      }
    }
    double least = predicted_us(bests.front());
    for (const std::size_t b : bests) least = std::min(least, predicted_us(b));
    study_.chosen = *std::find_if(bests.begin(), bests.end(), [&](std::size_t b) {
      return predicted_us(b) * kOtherAlgorithm <= least;
    });
    study_.plan = compose(spec_, topology_.plane_count(), study_.candidates[study_.chosen].recipe);
    study_.plan.predicted_us = predicted_us(study_.chosen);
  }

  double predicted_us(std::size_t candidate) const {
    return study_.candidates[candidate].predicted_us;
  }

  const Topology& topology_;
  const CollectiveSpec& spec_;
  const PlanOptions& options_;
  Study study_;
  std::vector<int> rank_counts_;              // by host
  int host_count_ = 0;                        // with ranks
  int most_ranks_ = 0;                        // on one host
  int least_ranks_ = 0;                       // on one that has any
  std::vector<std::vector<RailCost>> costs_;  // by route and rank
};

}  // namespace

Result<Study> study(const Topology& topology, const CollectiveSpec& spec,
                    const PlanOptions& options) {
  return Studying(topology, spec, options).run();
}

}  // namespace polyrail
