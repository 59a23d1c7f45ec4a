// How many bytes each of several rails should carry, so that all finish together.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/rail.hpp"

namespace polyrail {

struct Split {
  enum class Verdict : std::uint8_t {
    kUsed,
    kTooLate,  // it would not have delivered a byte before the others are done
    kNoGain,   // what it carries saves less than one more rail costs
  };
  std::vector<double> bytes;      // by curve; sums up to what was asked for
  std::vector<Verdict> verdicts;  // by curve
  double time_us = 0;             // including the cost of using several rails
};

// Splits `bytes` over rails with these cost curves: all rails used finish at the same time, and no
// other set of rails found is faster. Each rail after the first costs `extra_rail_us`. Equal rails
// are preferred in the order given. Precondition: at least one curve, none empty.
Split split(const std::vector<CostCurve>& curves, std::uint64_t bytes, double extra_rail_us);

}  // namespace polyrail
