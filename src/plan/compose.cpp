#include "src/plan/compose.hpp"

#include <algorithm>

#include "src/base/assert.hpp"

namespace polyrail {
namespace {

constexpr std::string_view kTwoLevelPrefix = "two_level(";
constexpr std::string_view kLeadersPrefix = "leaders(";

int chunk_count_of(const Recipe& recipe, const Strand& strand) {
  if (recipe.least_chunk_bytes == 0) return recipe.chunk_count;
  const std::uint64_t most = strand.range.bytes / recipe.least_chunk_bytes;
  return static_cast<int>(std::clamp<std::uint64_t>(most, 1, recipe.chunk_count));
}

}  // namespace

std::string Algorithm::name() const {
  const std::string inner(generator->name);
  switch (levels) {
    case Levels::kOne:
      return inner;
    case Levels::kTwo:
      return std::string(kTwoLevelPrefix) + inner + ")";
    case Levels::kLeaders:
      return std::string(kLeadersPrefix) + inner + ")";
  }
  return inner;
}

Result<Algorithm> parse_algorithm(std::string_view text) {
  Algorithm algorithm;
  std::string_view inner = text;
  for (const auto& [prefix, levels] : {std::pair{kTwoLevelPrefix, Algorithm::Levels::kTwo},
                                       std::pair{kLeadersPrefix, Algorithm::Levels::kLeaders}}) {
    if (text.starts_with(prefix) && text.ends_with(")")) {
      inner = text.substr(prefix.size(), text.size() - prefix.size() - 1);
      algorithm.levels = levels;
    }
  }
  algorithm.generator = find_generator(inner);
  if (algorithm.generator != nullptr) return algorithm;
  std::string known;
  for (const GeneratorInfo& info : generators()) known += " " + std::string(info.name);
  return Status(StatusCode::kInvalidArgument, "there is no algorithm \"" + std::string(text) +
                                                  "\"; there are" + known +
                                                  ", and two_level(X) and leaders(X) over them");
}

Plan compose(const CollectiveSpec& spec, int plane_count, const Recipe& recipe) {
  PR_ASSERT(recipe.chunk_count >= 1 && recipe.algorithm.generator != nullptr);
  PlanBuilder builder(spec, plane_count);
  const GeneratorInfo& generator = *recipe.algorithm.generator;
  for (const Strand& strand : recipe.strands) {
    const std::vector<Range> chunks =
        cut_evenly(strand.range, chunk_count_of(recipe, strand), builder.element_bytes());
    std::vector<std::vector<StepList>> done(chunks.size());  // by chunk and rank
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      if (chunks[c].bytes == 0) continue;
      std::vector<int> ranks = recipe.ranks;
      if (generator.wants_mirror && c % 2 == 1) std::reverse(ranks.begin(), ranks.end());
      Piece piece = piece_of_inputs(spec, chunks[c], strand.route, ranks);
      std::vector<int> hosts;
      for (const int rank : ranks) {
        if (!strand.weights.empty()) piece.weights.push_back(strand.weights[rank]);
        hosts.push_back(recipe.hosts[rank]);
      }
      const auto window = static_cast<std::size_t>(recipe.window);
      if (window > 0 && c >= window && !done[c - window].empty()) {
        for (Member& member : piece.members) member.after = done[c - window][member.rank];
      }
      const DoneSteps done_by_member =
          recipe.algorithm.levels == Algorithm::Levels::kOne
              ? generator.generate(builder, piece)
              : two_level(builder, piece, hosts, generator.generate,
                          recipe.algorithm.levels == Algorithm::Levels::kTwo);
      done[c].resize(spec.rank_count);
      for (std::size_t m = 0; m < ranks.size(); ++m) done[c][ranks[m]] = done_by_member[m];
    }
  }
  return std::move(builder).take(recipe.algorithm.name());
}

}  // namespace polyrail
