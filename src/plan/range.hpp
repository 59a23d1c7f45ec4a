// Range: a contiguous part of the vector, and how ranges are cut into whole, well aligned pieces.
#pragma once

#include <cstdint>
#include <vector>

namespace polyrail {

struct Range {
  std::uint64_t offset_bytes = 0;
  std::uint64_t bytes = 0;

  std::uint64_t end() const { return offset_bytes + bytes; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Cuts `range` into as many adjoining pieces as there are weights, each about its weight's part of
// the bytes. Pieces may be empty; those of weight zero are. Cuts lie at multiples of 256 bytes of
// the vector where pieces are long enough for that to be fair, else of 64 bytes, else of
// `element_bytes`. Preconditions: range is whole elements, weights are >= 0 with a positive sum.
std::vector<Range> cut_by_weight(const Range& range, const std::vector<double>& weights,
                                 std::uint64_t element_bytes);
std::vector<Range> cut_evenly(const Range& range, int piece_count, std::uint64_t element_bytes);

}  // namespace polyrail
