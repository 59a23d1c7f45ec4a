// Recipe: a plan in short - which algorithm, in how many chunks, which bytes over which rails -
// and compose(), which writes it out. Each rail runs a complete schedule on its own range.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <polyrail/status.hpp>

#include "src/plan/generators.hpp"

namespace polyrail {

// A generator, by itself or across hosts within two_level.
struct Algorithm {
  enum class Levels : std::uint8_t {
    kOne,      // "ring": all ranks alike
    kTwo,      // "two_level(ring)": all ranks of a host take part across hosts
    kLeaders,  // "leaders(ring)": one rank of each host does
  };
  Levels levels = Levels::kOne;
  const GeneratorInfo* generator = nullptr;

  std::string name() const;
};

// The error lists the names there are for the collective.
Result<Algorithm> parse_algorithm(Collective collective, std::string_view text);

// A share of the vector and the rails that carry it.
struct Strand {
  int plane = -1;  // the plane that gives the strand its share; the route may use others too
  Range range;     // of blocks: only its length counts, each block being cut in proportion
  Route route;
  std::vector<double> weights;  // by rank: how much of the range it reduces or passes on for
                                // others; empty: all the same
};

struct Recipe {
  Algorithm algorithm;
  int chunk_count = 1;                  // each strand's range is cut into so many,
  std::uint64_t least_chunk_bytes = 0;  // but into none shorter than this
  // A rank takes part in a chunk when the one so many before it is done there, so that results do
  // not queue behind contributions to far later chunks; 0: in all chunks at once.
  int window = 0;
  std::vector<int> ranks;  // all ranks, in the order in which they are members
  std::vector<int> hosts;  // by rank; for two levels
  std::vector<Strand> strands;
  PairSplits pair_splits;  // of moves: over the strands, all of them
};

Plan compose(const CollectiveSpec& spec, int plane_count, const Recipe& recipe);

}  // namespace polyrail
