#include "src/comm/arrivals.hpp"

#include <algorithm>

namespace polyrail {
namespace {

constexpr double kSkip = 0.4;             // of a stream's time is not counted
constexpr double kPart = 0.5;             // of the rest is what counts, the best,
constexpr std::size_t kFewArrivals = 64;  // but the best of few would be chance
constexpr double kPartOfFew = 0.85;

}  // namespace

double arrival_rate(const std::vector<Arrival>& arrivals) {
  if (arrivals.size() < 2) return 0;
  const double last_us = arrivals.back().at_us;
  const double from_us = arrivals.front().at_us + kSkip * (last_us - arrivals.front().at_us);
  auto begin = std::find_if(arrivals.begin(), arrivals.end() - 2,
                            [&](const Arrival& arrival) { return arrival.at_us >= from_us; });
  const double part = arrivals.size() < kFewArrivals ? kPartOfFew : kPart;
  const double part_us = part * (last_us - begin->at_us);
  double best = 0;
  for (auto end = begin; end != arrivals.end(); ++end) {
    // The shortest stretch up to here that is long enough. Of slices that arrived together it
    // begins with the last: there is no time for the others.
    while (begin + 1 < end && end->at_us - (begin + 1)->at_us >= part_us) ++begin;
    const double length_us = end->at_us - begin->at_us;
    if (length_us < part_us || length_us <= 0) continue;
    best = std::max(best, static_cast<double>(end->bytes - begin->bytes) / length_us * 1e6);
  }
  return best;
}

}  // namespace polyrail
