#include "src/plan/compose.hpp"

#include <algorithm>

#include "src/base/assert.hpp"
#include "src/plan/blocks.hpp"

namespace polyrail {
namespace {

constexpr std::string_view kTwoLevelPrefix = "two_level(";
constexpr std::string_view kLeadersPrefix = "leaders(";

int chunk_count_of(const Recipe& recipe, const Range& range) {
  if (recipe.least_chunk_bytes == 0) return recipe.chunk_count;
  const std::uint64_t most = range.bytes / recipe.least_chunk_bytes;
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

Result<Algorithm> parse_algorithm(Collective collective, std::string_view text) {
  Algorithm algorithm;
  std::string_view inner = text;
  for (const auto& [prefix, levels] : {std::pair{kTwoLevelPrefix, Algorithm::Levels::kTwo},
                                       std::pair{kLeadersPrefix, Algorithm::Levels::kLeaders}}) {
    if (text.starts_with(prefix) && text.ends_with(")")) {
      inner = text.substr(prefix.size(), text.size() - prefix.size() - 1);
      algorithm.levels = levels;
    }
  }
  algorithm.generator = find_generator(collective, inner);
  const bool has_levels = collective == Collective::kAllReduce ||
                          (has_blocks(collective) && algorithm.levels == Algorithm::Levels::kTwo);
  if (algorithm.generator != nullptr &&
      (has_levels || algorithm.levels == Algorithm::Levels::kOne)) {
    return algorithm;
  }
  std::string known;
  for (const GeneratorInfo& info : generators(collective)) known += " " + std::string(info.name);
  if (collective == Collective::kAllReduce) known += ", and two_level(X) and leaders(X) over them";
  if (has_blocks(collective)) known += ", and two_level(X) over them";
  return Status(StatusCode::kInvalidArgument, "there is no algorithm \"" + std::string(text) +
                                                  "\" for " + std::string(name(collective)) +
                                                  "; there are" + known);
}

namespace {

// all_reduce and scans: each strand has its own range of the vector.
void compose_pieces(PlanBuilder& builder, const Recipe& recipe) {
  const CollectiveSpec& spec = builder.spec();
  const GeneratorInfo& generator = *recipe.algorithm.generator;
  for (const Strand& strand : recipe.strands) {
    const std::vector<Range> chunks =
        cut_evenly(strand.range, chunk_count_of(recipe, strand.range), builder.element_bytes());
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
              ? (spec.wire_type ? generator.generate_narrow : generator.generate)(builder, piece)
              : two_level(builder, piece, hosts, generator.generate,
                          recipe.algorithm.levels == Algorithm::Levels::kTwo);
      done[c].resize(spec.rank_count);
      for (std::size_t m = 0; m < ranks.size(); ++m) done[c][ranks[m]] = done_by_member[m];
    }
  }
}

RankGroups groups_of(const Recipe& recipe) {
  RankGroups groups;
  std::vector<int> hosts;  // by group
  for (const int rank : recipe.ranks) {
    const int host = recipe.hosts[rank];
    const auto at = std::find(hosts.begin(), hosts.end(), host) - hosts.begin();
    const bool is_new = at == static_cast<std::ptrdiff_t>(hosts.size());
    if (is_new || recipe.algorithm.levels == Algorithm::Levels::kOne) {
      groups.push_back({rank});
      hosts.push_back(host);
    } else {
      groups[static_cast<std::size_t>(at)].push_back(rank);
    }
  }
  return groups;
}

// Each strand carries its share of every block.
void compose_blocks(PlanBuilder& builder, const Recipe& recipe) {
  const CollectiveSpec& spec = builder.spec();
  const std::uint64_t element = builder.element_bytes();
  const std::vector<Block> blocks = blocks_of(spec);
  if (!spec.is_in_place) {
    for (const Block& block : blocks) {
      if (block.range.bytes == 0 || (reduces(spec.collective) && spec.rank_count > 1)) continue;
      builder.copy(
          block.root,
          {Space::kInput, block.range.offset_bytes - block.input_origin, block.range.bytes},
          {Space::kOutput, block.range.offset_bytes - block.output_origin, block.range.bytes},
          false, {});
    }
  }
  if (recipe.strands.empty()) return;
  const RankGroups groups = groups_of(recipe);
  std::vector<double> shares;
  for (const Strand& strand : recipe.strands) {
    shares.push_back(static_cast<double>(strand.range.bytes));
  }
  std::vector<std::vector<Range>> of_block;
  for (const Block& block : blocks) of_block.push_back(cut_by_weight(block.range, shares, element));
  for (std::size_t s = 0; s < recipe.strands.size(); ++s) {
    const Strand& strand = recipe.strands[s];
    std::vector<double> weights;  // by group
    if (!strand.weights.empty()) {
      for (const std::vector<int>& group : groups) {
        weights.push_back(0);
        for (const int rank : group) weights.back() += strand.weights[rank];
      }
    }
    std::vector<Block> own = blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) own[b].range = of_block[b][s];
    const auto parts = cut_blocks(own, groups, recipe.algorithm.generator->shape, weights,
                                  spec.is_ordered && reduces(spec.collective), element);
    const int chunk_count = chunk_count_of(recipe, strand.range);
    for (int c = 0; c < chunk_count; ++c) {
      for (std::size_t b = 0; b < own.size(); ++b) {
        for (const BlockPart& part : parts[b]) {
          BlockPart chunk = part;
          chunk.range = cut_evenly(part.range, chunk_count, element)[c];
          if (chunk.range.bytes == 0) continue;
          if (reduces(spec.collective)) {
            collect(builder, own[b], chunk, strand.route);
          } else {
            spread(builder, own[b], chunk, strand.route);
          }
        }
      }
    }
  }
}

}  // namespace

Plan compose(const CollectiveSpec& spec, int plane_count, const Recipe& recipe) {
  PR_ASSERT(recipe.chunk_count >= 1 && recipe.algorithm.generator != nullptr);
  PlanBuilder builder(spec, plane_count);
  if (recipe.algorithm.generator->generate != nullptr) {
    compose_pieces(builder, recipe);
  } else if (recipe.algorithm.generator->is_doubling && !recipe.strands.empty()) {
    write_doubling(builder, recipe.strands.front().route);
  } else if (has_blocks(spec.collective)) {
    compose_blocks(builder, recipe);
  } else if (spec.collective == Collective::kBarrier) {
    write_barrier(builder, recipe.strands.front().route);
  } else {
    std::vector<Route> routes;
    for (const Strand& strand : recipe.strands) routes.push_back(strand.route);
    write_moves(builder, routes, recipe.pair_splits);
  }
  return std::move(builder).take(recipe.algorithm.name());
}

}  // namespace polyrail
