#include "src/plan/layout.hpp"

#include <numeric>

namespace polyrail {

std::uint64_t CollectiveSpec::bytes() const {
  const auto ranks = static_cast<std::uint64_t>(rank_count);
  std::uint64_t elements = count;
  if (!counts.empty()) {
    elements = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  } else if (collective == Collective::kAllToAll) {
    elements = count * ranks * ranks;
  } else if (has_parts(collective)) {
    elements = count * ranks;
  }
  return elements * size_bytes(type);
}

std::uint64_t Layout::vector_bytes() const {
  return spec_.bytes();
}

Range Layout::part(int rank) const {
  if (spec_.counts.empty()) {
    const std::uint64_t bytes = spec_.count * element();
    return {bytes * static_cast<std::uint64_t>(rank), bytes};
  }
  std::uint64_t before = 0;
  for (int other = 0; other < rank; ++other) before += spec_.counts[other];
  return {before * element(), spec_.counts[rank] * element()};
}

std::uint64_t Layout::pair_bytes(int from, int to) const {
  const std::uint64_t count =
      spec_.counts.empty() ? spec_.count : spec_.counts[from * spec_.rank_count + to];
  return count * element();
}

Range Layout::sent(int from, int to) const {
  Range range{0, pair_bytes(from, to)};
  if (spec_.counts.empty()) return {range.bytes * static_cast<std::uint64_t>(to), range.bytes};
  for (int before = 0; before < to; ++before) range.offset_bytes += pair_bytes(from, before);
  return range;
}

Range Layout::received(int from, int to) const {
  Range range{0, pair_bytes(from, to)};
  if (spec_.counts.empty()) return {range.bytes * static_cast<std::uint64_t>(from), range.bytes};
  for (int before = 0; before < from; ++before) range.offset_bytes += pair_bytes(before, to);
  return range;
}

std::uint64_t Layout::input_bytes(int rank) const {
  switch (spec_.collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
    case Collective::kReduceScatter:
    case Collective::kScan:
    case Collective::kExclusiveScan:
      return spec_.bytes();
    case Collective::kBroadcast:
    case Collective::kScatter:
      return is_root(rank) ? spec_.bytes() : 0;
    case Collective::kAllGather:
    case Collective::kGather:
      return part(rank).bytes;
    case Collective::kAllToAll:
      return sent(rank, spec_.rank_count - 1).end();
    case Collective::kBarrier:
      break;
  }
  return 0;
}

std::uint64_t Layout::output_bytes(int rank) const {
  switch (spec_.collective) {
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kAllGather:
    case Collective::kScan:
      return spec_.bytes();
    case Collective::kReduce:
    case Collective::kGather:
      return is_root(rank) ? spec_.bytes() : 0;
    case Collective::kExclusiveScan:
      return rank == 0 ? 0 : spec_.bytes();
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return part(rank).bytes;
    case Collective::kAllToAll:
      return received(spec_.rank_count - 1, rank).end();
    case Collective::kBarrier:
      break;
  }
  return 0;
}

std::vector<Portion> Layout::inputs(int rank) const {
  const std::uint64_t bytes = spec_.bytes();
  switch (spec_.collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
    case Collective::kReduceScatter:
    case Collective::kScan:
    case Collective::kExclusiveScan:
      return {{0, bytes, 0, rank, rank + 1}};
    case Collective::kBroadcast:
    case Collective::kScatter:
      if (!is_root(rank)) return {};
      return {{0, bytes, 0, rank, rank + 1}};
    case Collective::kAllGather:
    case Collective::kGather:
      return {{0, part(rank).bytes, part(rank).offset_bytes, rank, rank + 1}};
    case Collective::kAllToAll: {
      std::uint64_t origin = 0;  // the inputs of the ranks follow one another
      for (int from = 0; from < rank; ++from) {
        for (int to = 0; to < spec_.rank_count; ++to) origin += pair_bytes(from, to);
      }
      std::uint64_t own = 0;
      for (int to = 0; to < spec_.rank_count; ++to) own += pair_bytes(rank, to);
      return {{0, own, origin, rank, rank + 1}};
    }
    case Collective::kBarrier:
      break;
  }
  return {};
}

std::vector<Portion> Layout::outputs(int rank) const {
  const std::uint64_t bytes = spec_.bytes();
  const int ranks = spec_.rank_count;
  const int root = spec_.root;
  switch (spec_.collective) {
    case Collective::kAllReduce:
      return {{0, bytes, 0, 0, ranks}};
    case Collective::kReduce:
      if (!is_root(rank)) return {};
      return {{0, bytes, 0, 0, ranks}};
    case Collective::kBroadcast:
      return {{0, bytes, 0, root, root + 1}};
    case Collective::kReduceScatter:
      return {{0, part(rank).bytes, part(rank).offset_bytes, 0, ranks}};
    case Collective::kScatter:
      return {{0, part(rank).bytes, part(rank).offset_bytes, root, root + 1}};
    case Collective::kGather:
      if (!is_root(rank)) return {};
      [[fallthrough]];
    case Collective::kAllGather: {
      std::vector<Portion> portions;
      for (int from = 0; from < ranks; ++from) {
        portions.push_back(
            {part(from).offset_bytes, part(from).bytes, part(from).offset_bytes, from, from + 1});
      }
      return portions;
    }
    case Collective::kAllToAll: {
      std::vector<Portion> portions;
      std::uint64_t begin = 0;  // of the input of `from`, in the vector
      std::uint64_t offset = 0;
      for (int from = 0; from < ranks; ++from) {
        std::uint64_t before = 0;
        std::uint64_t whole = 0;
        for (int to = 0; to < ranks; ++to) {
          if (to < rank) before += pair_bytes(from, to);
          whole += pair_bytes(from, to);
        }
        portions.push_back({offset, pair_bytes(from, rank), begin + before, from, from + 1});
        offset += pair_bytes(from, rank);
        begin += whole;
      }
      return portions;
    }
    case Collective::kScan:
      return {{0, bytes, 0, 0, rank + 1}};
    case Collective::kExclusiveScan:
      if (rank == 0) return {};
      return {{0, bytes, 0, 0, rank}};
    case Collective::kBarrier:
      break;
  }
  return {};
}

std::uint64_t Layout::input_base(int rank) const {
  const bool is_within = spec_.collective == Collective::kAllGather ||
                         (spec_.collective == Collective::kGather && is_root(rank));
  return is_within ? part(rank).offset_bytes : 0;
}

std::uint64_t Layout::output_base(int rank) const {
  const bool is_within = spec_.collective == Collective::kReduceScatter ||
                         (spec_.collective == Collective::kScatter && is_root(rank));
  return is_within ? part(rank).offset_bytes : 0;
}

Layout::Place Layout::place(int rank, const Slice& slice) const {
  Place place{slice.space, slice.offset_bytes, slice.offset_bytes + slice.bytes};
  if (slice.space == Space::kWire) {
    const std::uint64_t factor = element() / element_bytes(spec_, Space::kWire);
    return {Space::kWire, place.begin * factor, place.end * factor};
  }
  if (!spec_.is_in_place || slice.space == Space::kScratch) return place;
  const std::uint64_t base = slice.space == Space::kInput ? input_base(rank) : output_base(rank);
  return {Space::kOutput, place.begin + base, place.end + base};
}

}  // namespace polyrail
