#include "src/plan/study.hpp"

#include <algorithm>
#include <numeric>

#include "src/plan/blocks.hpp"
#include "src/plan/simulate.hpp"

namespace polyrail {
namespace {

// Predictions are not exact: an algorithm must be this much faster to replace one that is preferred
// for its simplicity, and more chunks this much to replace fewer of the same algorithm.
constexpr double kOtherAlgorithm = 0.98;
constexpr double kMoreChunks = 0.995;
// Of few bytes the processors' work is most of the time, and what other ranks do to it is not
// predicted: the fewest steps of those that are about as good.
constexpr std::uint64_t kFewBytes = 8 * 1024;
// Doubling, which has no chunks and one rail, is not tried with more.
constexpr std::uint64_t kSomeBytes = 256 * 1024;
constexpr double kAboutAsGood = 0.88;
// Planning must not take long: candidates of very many steps are not tried, and of those with many
// only the ones whose rough estimate is near the best.
constexpr double kMostSteps = 300000;
constexpr double kManySteps = 3000;
constexpr double kHopeless = 3;
constexpr double kMostChunkedSteps = 10000;
constexpr double kMostUnequalSteps = 50000;  // of unequal hosts, which need chunks
constexpr std::uint64_t kLeastMessageBytes = 16 * 1024;
constexpr std::size_t kTriedWithChunks = 3;
constexpr int kChunkWindow = 4;
constexpr double kWorthPooling = 1.05;
constexpr int kMixedRoutes = 4;  // twice as many among few hosts
constexpr int kFewHosts = 4;

class Studying {
 public:
  Studying(const Topology& topology, const CollectiveSpec& spec, const PlanOptions& options,
           std::vector<NamedRoute> routes)
      : topology_(topology),
        spec_(studied(spec)),
        asked_(spec),
        options_(options),
        routes_(std::move(routes)),
        drafter_(topology, spec_, options, routes_) {}

  Result<Study> run() {
    if (options_.algorithm.empty()) {
      draft_all();
    } else {
      Result<Algorithm> algorithm = parse_algorithm(spec_.collective, options_.algorithm);
      if (!algorithm.is_ok()) return algorithm.status();
      if (spec_.wire_type && (algorithm.value().generator->generate_narrow == nullptr ||
                              algorithm.value().levels != Algorithm::Levels::kOne)) {
        return Status(StatusCode::kInvalidArgument,
                      "plan: " + options_.algorithm + " knows no wire type; one_shot, direct do");
      }
      if (algorithm.value().levels != Algorithm::Levels::kOne && drafter_.host_count() < 2) {
        return Status(StatusCode::kInvalidArgument,
                      "plan: " + options_.algorithm + " needs ranks on at least two hosts");
      }
      if (algorithm.value().generator->is_doubling &&
          (!fits_doubling() || algorithm.value().levels != Algorithm::Levels::kOne)) {
        return Status(StatusCode::kInvalidArgument,
                      "plan: doubling is for all_gather and reduce_scatter among a power of two of "
                      "ranks");
      }
      drafts_.push_back(drafter_.draft(algorithm.value()));
    }
    try_drafts();
    try_chunks();
    choose();
    study_.routes = routes_;
    return std::move(study_);
  }

 private:
  // What is sent must not depend on where a rank has its buffers, which the others do not know;
  // only of all_reduce all ranks agree on it.
  static CollectiveSpec studied(CollectiveSpec spec) {
    if (spec.collective != Collective::kAllReduce) spec.is_in_place = false;
    return spec;
  }

  // Generators that differ from one another among so many ranks or hosts, preferred first.
  std::vector<const GeneratorInfo*> generators_among(int member_count, bool is_in_place) const {
    std::vector<const GeneratorInfo*> infos;
    const auto find = [&](std::string_view name) { return find_generator(spec_.collective, name); };
    if (spec_.collective != Collective::kAllReduce) {
      // Between two the trees of a block are the same.
      if (has_blocks(spec_.collective) && member_count == 2) {
        infos.push_back(find("direct"));
      } else {
        for (const GeneratorInfo& info : generators(spec_.collective)) infos.push_back(&info);
      }
    } else if (member_count == 2) {
      infos = {find("direct"), find("ring")};
      if (is_in_place) infos.push_back(find("one_shot_staged"));
    } else {
      if (is_in_place) infos.push_back(find("one_shot_staged"));
      for (const GeneratorInfo& info : generators(spec_.collective)) {
        if (info.name != "one_shot_staged") infos.push_back(&info);
      }
    }
    if (spec_.is_ordered) {
      std::erase_if(infos, [](const GeneratorInfo* info) { return !info->keeps_rank_order; });
    }
    if (spec_.wire_type) {
      infos = {find("one_shot")};
      if (member_count > 2) infos.push_back(find("direct"));
    }
    return infos;
  }

  bool fits_doubling() const {
    const bool is_power = (spec_.rank_count & (spec_.rank_count - 1)) == 0;
    return is_power && has_parts(spec_.collective);
  }

  void draft(const Algorithm& algorithm) {
    if (algorithm.generator->is_doubling &&
        (!fits_doubling() || algorithm.levels != Algorithm::Levels::kOne ||
         spec_.bytes() > kSomeBytes)) {
      return;
    }
    Draft made = drafter_.draft(algorithm);
    // Without unequal weights a relay is no other than direct.
    const bool is_useless =
        has_blocks(spec_.collective) && algorithm.generator->shape == Shape::kRelay &&
        std::all_of(made.recipe.strands.begin(), made.recipe.strands.end(),
                    [](const Strand& strand) { return strand.weights.empty(); });
    if (!is_useless) drafts_.push_back(std::move(made));
  }

  void draft_all() {
    using Levels = Algorithm::Levels;
    for (const GeneratorInfo* info : generators_among(spec_.rank_count, spec_.is_in_place)) {
      draft({Levels::kOne, info});
    }
    const bool has_levels = drafter_.host_count() > 1 && drafter_.most_ranks() > 1;
    if (has_blocks(spec_.collective) && has_levels && !spec_.is_ordered) {
      for (const GeneratorInfo* info : generators_among(drafter_.host_count(), false)) {
        draft({Levels::kTwo, info});
      }
    }
    if (spec_.collective != Collective::kAllReduce || spec_.is_ordered || spec_.wire_type) return;
    if (has_levels) {
      // What a host of several ranks takes across is a sum in scratch.
      const bool is_in_place = spec_.is_in_place && drafter_.least_ranks() == 1;
      for (const Levels levels : {Levels::kTwo, Levels::kLeaders}) {
        for (const GeneratorInfo* info : generators_among(drafter_.host_count(), is_in_place)) {
          drafts_.push_back(drafter_.draft({levels, info}));
        }
      }
    }
    if (drafter_.host_count() > 2 && pooling_gain(topology_) > kWorthPooling) {
      drafts_.push_back(drafter_.draft_mixed(drafter_.host_count() > kFewHosts ? kMixedRoutes
                                                                               : 2 * kMixedRoutes));
    }
  }

  void try_drafts() {
    double best_us = 0;
    for (const Draft& draft : drafts_) {
      if (draft.estimate_us <= 0) continue;
      best_us = best_us > 0 ? std::min(best_us, draft.estimate_us) : draft.estimate_us;
    }
    for (Draft& draft : drafts_) {
      const std::string name = draft.recipe.algorithm.name();
      const double steps = drafter_.step_count(draft.recipe, 1);
      if (drafts_.size() > 1 && steps > kMostSteps) {
        study_.left_out.push_back(name + ": too many steps for so many ranks");
      } else if (steps > kManySteps && draft.estimate_us > kHopeless * best_us) {
        study_.left_out.push_back(name + ": far too slow by a rough estimate");
      } else {
        add({std::move(draft.recipe), 0, 0, std::move(draft.verdicts)});
      }
    }
  }

  void add(Candidate candidate) {
    const Plan plan = compose(spec_, topology_.plane_count(), candidate.recipe);
    candidate.predicted_us = simulate(plan, topology_).total_us;
    candidate.step_count = 0;
    for (const Schedule& schedule : plan.schedules) candidate.step_count += schedule.steps.size();
    study_.candidates.push_back(std::move(candidate));
  }

  // The most promising candidates once more, with chunks that overlap their hops. Unequal hosts
  // are promising only with them.
  void try_chunks() {
    std::vector<std::size_t> promising(study_.candidates.size());
    std::iota(promising.begin(), promising.end(), std::size_t{0});
    std::stable_sort(promising.begin(), promising.end(), [&](std::size_t a, std::size_t b) {
      return predicted_us(a) < predicted_us(b);
    });
    for (std::size_t p = 0; p < promising.size(); ++p) {
      const Candidate& candidate = study_.candidates[promising[p]];
      if (candidate.recipe.algorithm.generator->is_doubling) continue;
      // What only forwards is slow in one piece and may be the best in many.
      const bool forwards = spec_.collective != Collective::kAllReduce;
      if (p < kTriedWithChunks || forwards || is_unequal(candidate))
        try_chunks_of(Candidate(candidate));
    }
  }

  static bool is_unequal(const Candidate& candidate) {
    return std::any_of(candidate.recipe.strands.begin(), candidate.recipe.strands.end(),
                       [](const Strand& strand) { return !strand.weights.empty(); });
  }

  void try_chunks_of(Candidate candidate) {
    Recipe& recipe = candidate.recipe;
    recipe.least_chunk_bytes = kLeastMessageBytes * static_cast<std::uint64_t>(spec_.rank_count);
    std::uint64_t longest = 0;
    for (const Strand& strand : recipe.strands) longest = std::max(longest, strand.range.bytes);
    const bool needs_chunks = is_unequal(candidate);
    double best_us = candidate.predicted_us;
    const bool is_all_reduce = spec_.collective == Collective::kAllReduce;
    const int most_chunks = needs_chunks || !is_all_reduce ? 64 : 16;
    for (int chunk_count = 2; chunk_count <= most_chunks; chunk_count *= 2) {
      if (longest / chunk_count < recipe.least_chunk_bytes) break;
      const double most_steps = needs_chunks ? kMostUnequalSteps : kMostChunkedSteps;
      if (drafter_.step_count(recipe, chunk_count) > most_steps) break;
      recipe.chunk_count = chunk_count;
      // Unequal hosts are at different chunks at a time, and must wait for one another.
      recipe.window = needs_chunks && chunk_count > kChunkWindow ? kChunkWindow : 0;
      add(candidate);
      const double us = study_.candidates.back().predicted_us;
      if (us > best_us * kMoreChunks && !needs_chunks) break;
      best_us = std::min(best_us, us);
    }
  }

  // Of each algorithm the fewest chunks that are as good as its best; of these the first algorithm
  // that is as good as the best, as far as predictions can be trusted, or the one of fewest steps.
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
    const bool is_short = spec_.bytes() <= kFewBytes;
    std::erase_if(bests, [&](std::size_t b) {
      return predicted_us(b) * (is_short ? kAboutAsGood : kOtherAlgorithm) > least;
    });
    study_.chosen = bests.front();
    if (is_short) {
      study_.chosen = *std::min_element(bests.begin(), bests.end(), [&](auto a, auto b) {
        return study_.candidates[a].step_count < study_.candidates[b].step_count;
      });
    }
    study_.plan = compose(asked_, topology_.plane_count(), study_.candidates[study_.chosen].recipe);
    study_.plan.predicted_us = predicted_us(study_.chosen);
  }

  double predicted_us(std::size_t candidate) const {
    return study_.candidates[candidate].predicted_us;
  }

  const Topology& topology_;
  const CollectiveSpec spec_;
  const CollectiveSpec& asked_;
  const PlanOptions& options_;
  std::vector<NamedRoute> routes_;
  Drafter drafter_;
  std::vector<Draft> drafts_;
  Study study_;
};

}  // namespace

Result<Study> study(const Topology& topology, const CollectiveSpec& spec,
                    const PlanOptions& options) {
  Result<std::vector<NamedRoute>> routes = find_routes(topology, spec.bytes());
  if (!routes.is_ok()) return routes.status();
  return Studying(topology, spec, options, std::move(routes).value()).run();
}

}  // namespace polyrail
