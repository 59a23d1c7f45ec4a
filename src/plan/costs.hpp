// What rails cost, as the planner sees it: measured curves where there are any, else defaults.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/generators.hpp"
#include "topology/topology.hpp"

namespace polyrail {

// A message of so many bytes occupies its rail for occupancy_us() and arrives latency_us() after
// it left; messages follow one another without gaps.
class RailCost final {
 public:
  explicit RailCost(const Rail& rail);

  double latency_us() const { return latency_us_; }
  double bytes_per_s() const { return bytes_per_s_; }
  double occupancy_us(double bytes) const;
  double time_us(double bytes) const { return latency_us_ + occupancy_us(bytes); }
  // Processor time of posting one message, or of taking one in.
  double message_us() const { return message_us_; }
  // Sizes between which occupancy_us is a straight line.
  const std::vector<double>& bends() const { return bends_; }

 private:
  CostCurve curve_;
  double latency_us_ = 0;
  double bytes_per_s_ = 0;
  double message_us_ = 0;
  double overhead_us_ = 0;  // of the rail, for what surrounds a message
  std::vector<double> bends_;
};

// Rate of one thread that copies memory of the host, in bytes/s.
double copy_rate(const Host& host);

// Time of a generator over a range of so many bytes, if all members' rails had the cost of the
// slowest member at each size; generators that give unequal hosts unequal parts get by with the
// members' mean rate. `rails`: by member, the rail it uses.
CostCurve generator_curve(const GeneratorInfo& generator, Collective collective,
                          const std::vector<RailCost>& rails);

// How much of a range each member should reduce, by the rates of their rails: empty if all are
// alike. The rule of direct: a member that owns the part w sends 1 + w(n-2) times the range.
std::vector<double> fitting_weights(const std::vector<double>& rates);

// The same for blocks that go to, or come from, all members: how much each should pass on for
// others or send to all itself, as a fraction of all. `own`: by member, the fraction that its own
// blocks are. Empty if there are fewer than three members. A member with the part w sends w(n-2)
// more than its own, and none can be done before it has taken in all that is not its own.
std::vector<double> relay_weights(const std::vector<double>& rates, const std::vector<double>& own);

}  // namespace polyrail
