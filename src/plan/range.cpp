#include "src/plan/range.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/assert.hpp"

namespace polyrail {
namespace {

// The coarsest alignment that misplaces a cut by at most 1/64 of an average piece.
std::uint64_t cut_unit(const Range& range, std::size_t piece_count, std::uint64_t element_bytes) {
  const std::uint64_t piece = range.bytes / std::max<std::size_t>(piece_count, 1);
  for (const std::uint64_t unit : {256U, 64U}) {
    if (piece >= 32 * unit && unit % element_bytes == 0) return unit;
  }
  return element_bytes;
}

}  // namespace

std::vector<Range> cut_by_weight(const Range& range, const std::vector<double>& weights,
                                 std::uint64_t element_bytes) {
  PR_ASSERT(!weights.empty() && element_bytes > 0 && range.bytes % element_bytes == 0);
  double sum = 0;
  std::size_t last_used = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    PR_ASSERT(weights[i] >= 0);
    sum += weights[i];
    if (weights[i] > 0) last_used = i;
  }
  PR_ASSERT(sum > 0);

  const std::uint64_t unit = cut_unit(range, weights.size(), element_bytes);
  std::vector<Range> pieces(weights.size());
  std::uint64_t begin = range.offset_bytes;
  double before = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    before += weights[i];
    std::uint64_t end = begin;
    if (i >= last_used) {
      end = range.end();
    } else if (weights[i] > 0) {
      const double ideal = static_cast<double>(range.bytes) * (before / sum);
      const auto wanted = range.offset_bytes + static_cast<std::uint64_t>(ideal);
      const std::uint64_t aligned = (wanted + unit / 2) / unit * unit;
      end = std::clamp(aligned, begin, range.end());
    }
    pieces[i] = {begin, end - begin};
    begin = end;
  }
  return pieces;
}

std::vector<Range> cut_evenly(const Range& range, int piece_count, std::uint64_t element_bytes) {
  return cut_by_weight(range, std::vector<double>(piece_count, 1.0), element_bytes);
}

}  // namespace polyrail
