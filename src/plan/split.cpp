#include "src/plan/split.hpp"

#include <algorithm>

#include "src/base/assert.hpp"

namespace polyrail {
namespace {

struct Filling {
  double time_us = 0;
  std::vector<double> bytes;  // by curve; 0 for curves not in the set
  int used_count = 0;
};

// Shares that make the curves of the set finish together: the least time by which they can have
// carried everything, found by bisection of sum over r of bytes_within_r(time) = bytes.
Filling fill(const std::vector<CostCurve>& curves, const std::vector<bool>& is_in_set,
             double bytes) {
  const auto carried = [&](std::size_t r, double time_us) {
    return is_in_set[r] ? std::min(bytes, curves[r].bytes_within(time_us)) : 0.0;
  };
  const auto carried_by_all = [&](double time_us) {
    double sum = 0;
    for (std::size_t r = 0; r < curves.size(); ++r) sum += carried(r, time_us);
    return sum;
  };

  // At `late` all is carried, at `early` not, or `early` is 0.
  double late = -1;
  for (std::size_t r = 0; r < curves.size(); ++r) {
    if (!is_in_set[r]) continue;
    const double alone = curves[r].time_us(bytes);
    if (late < 0 || alone < late) late = alone;
  }
  // Rounding may leave the inverse a hair short.
  for (int i = 0; i < 60 && carried_by_all(late) < bytes; ++i) late *= 1 + 1e-12 * (1 << (i / 2));
  double early = 0;
  for (int i = 0; i < 200 && late - early > 1e-12 * late; ++i) {
    const double middle = early + (late - early) / 2;
    (carried_by_all(middle) >= bytes ? late : early) = middle;
  }

  Filling filling;
  filling.time_us = late;
  filling.bytes.resize(curves.size());
  double excess = -bytes;
  for (std::size_t r = 0; r < curves.size(); ++r) {
    filling.bytes[r] = carried(r, late);
    excess += filling.bytes[r];
  }
  // Where a curve is flat its bytes jump at that time, and all of them are too many.
  for (std::size_t r = curves.size(); r-- > 0 && excess > 0;) {
    const double cut = std::min(excess, filling.bytes[r] - carried(r, early));
    filling.bytes[r] -= cut;
    excess -= cut;
  }
  for (const double share : filling.bytes) filling.used_count += share > 0 ? 1 : 0;
  return filling;
}

}  // namespace

Split split(const std::vector<CostCurve>& curves, std::uint64_t bytes, double extra_rail_us) {
  PR_ASSERT(!curves.empty());
  const auto payload = static_cast<double>(bytes);
  const auto total_us = [extra_rail_us](const Filling& filling) {
    return filling.time_us + extra_rail_us * std::max(filling.used_count - 1, 0);
  };

  std::vector<bool> is_in_set(curves.size(), true);
  Filling best = fill(curves, is_in_set, payload);
  Split result;
  result.verdicts.assign(curves.size(), Split::Verdict::kUsed);
  // Leave out, one after the other, the rail without which the total is least, as long as it falls.
  for (;;) {
    std::size_t worst = curves.size();
    Filling without_worst;
    for (std::size_t r = curves.size(); r-- > 0;) {
      if (best.used_count < 2 || best.bytes[r] <= 0) continue;
      is_in_set[r] = false;
      Filling without = fill(curves, is_in_set, payload);
      is_in_set[r] = true;
      const double bar = worst == curves.size() ? total_us(best) : total_us(without_worst);
      if (total_us(without) >= bar) continue;
      worst = r;
      without_worst = std::move(without);
    }
    if (worst == curves.size()) break;
    is_in_set[worst] = false;
    result.verdicts[worst] = Split::Verdict::kNoGain;
    best = std::move(without_worst);
  }
  for (std::size_t r = 0; r < curves.size(); ++r) {
    if (is_in_set[r] && best.bytes[r] <= 0) result.verdicts[r] = Split::Verdict::kTooLate;
  }
  result.time_us = total_us(best);
  result.bytes = std::move(best.bytes);
  return result;
}

}  // namespace polyrail
