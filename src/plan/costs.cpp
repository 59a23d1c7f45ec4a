#include "src/plan/costs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/base/assert.hpp"

namespace polyrail {
namespace {

constexpr double kDefaultCopyRate = 8e9;
constexpr double kLocalMessageUs = 0.1;    // a few cache lines
constexpr double kNetworkMessageUs = 2.5;  // a system call and the kernel's work under it
// On the wire around a message: our prefix, TCP, IP and Ethernet, and an acknowledgement.
constexpr double kNetworkMessageBytes = 200;
constexpr double kMaxBytes = 1e15;

CostCurve default_curve(RailKind kind) {
  return is_host_local(kind) ? CostCurve::linear(0.5, 6e9) : CostCurve::linear(25, 1e9);
}

double default_message_us(RailKind kind) {
  return is_host_local(kind) ? kLocalMessageUs : kNetworkMessageUs;
}

}  // namespace

RailCost::RailCost(const Rail& rail)
    : curve_(rail.curve.is_empty() ? default_curve(rail.kind) : rail.curve),
      latency_us_(std::max(curve_.latency_us(), 0.0)),
      bytes_per_s_(curve_.bytes_per_s()),
      message_us_(rail.message_us > 0 ? rail.message_us : default_message_us(rail.kind)) {
  if (!is_host_local(rail.kind)) overhead_us_ = kNetworkMessageBytes * 1e6 / bytes_per_s_;
  for (const CostCurve::Point& point : curve_.points) {
    bends_.push_back(static_cast<double>(point.bytes));
  }
}

double RailCost::occupancy_us(double bytes) const {
  // Small messages in a row are no faster than the rail: a flat start of the curve is latency.
  return std::max(curve_.time_us(bytes) - latency_us_, bytes * 1e6 / bytes_per_s_) + overhead_us_;
}

double copy_rate(const Host& host) {
  return host.copy_bytes_per_s > 0 ? host.copy_bytes_per_s : kDefaultCopyRate;
}

CostCurve generator_curve(const GeneratorInfo& generator, Collective collective,
                          const std::vector<RailCost>& rails) {
  PR_ASSERT(rails.size() >= 2);
  const CostShape shape = generator.cost_shape(collective, static_cast<int>(rails.size()));
  const bool is_balanced = generator.wants_weights && rails.size() > 2;
  double latency_us = 0;
  for (const RailCost& rail : rails) latency_us = std::max(latency_us, rail.latency_us());

  const auto time_us = [&](double bytes) {
    double total = shape.latencies * latency_us;
    double own_bytes = 0;  // what every member must send at least: its contribution
    for (const RailCost& rail : rails) own_bytes = std::max(own_bytes, rail.occupancy_us(bytes));
    double loads = 0;
    for (const CostShape::Load& load : shape.loads) {
      double slowest = 0;
      double rate_sum = 0;  // messages per us
      for (const RailCost& rail : rails) {
        const double one = rail.occupancy_us(bytes * load.fraction);
        slowest = std::max(slowest, one);
        rate_sum += one > 0 ? 1 / one : 0;
      }
      const double mean = rate_sum > 0 ? static_cast<double>(rails.size()) / rate_sum : 0;
      loads += load.message_count * (is_balanced ? mean : slowest);
    }
    return total + (is_balanced ? std::max(loads, own_bytes) : loads);
  };

  std::vector<double> bends = {0};
  for (const RailCost& rail : rails) {
    for (const double bend : rail.bends()) {
      bends.push_back(bend);
      for (const CostShape::Load& load : shape.loads) bends.push_back(bend / load.fraction);
    }
  }
  // Two more beyond the last, so that the last slope is that of large messages.
  bends.push_back(*std::max_element(bends.begin(), bends.end()) * 2 + 1024);
  bends.push_back(bends.back() * 2);
  std::sort(bends.begin(), bends.end());
  CostCurve curve;
  for (const double bend : bends) {
    const auto bytes = static_cast<std::uint64_t>(std::min(bend, kMaxBytes));
    if (!curve.points.empty() && bytes <= curve.points.back().bytes) continue;
    const double at = time_us(static_cast<double>(bytes));
    const double before = curve.points.empty() ? 0 : curve.points.back().time_us;
    curve.points.push_back({bytes, std::max(at, before)});
  }
  return curve;
}

std::vector<double> fitting_weights(const std::vector<double>& rates) {
  const auto n = static_cast<double>(rates.size());
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  constexpr double kAlike = 1.02;
  if (rates.size() < 3 || *most <= *least * kAlike) return {};
  const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
  const double reachable = std::min(*least, sum / (2 * (n - 1)));
  std::vector<double> weights;
  for (const double rate : rates) {
    weights.push_back(std::max(0.0, (rate / reachable - 1) / (n - 2)));
  }
  return weights;
}

std::vector<double> relay_weights(const std::vector<double>& rates,
                                  const std::vector<double>& own) {
  const auto n = static_cast<double>(rates.size());
  if (rates.size() < 3) return {};
  const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
  double time = (n - 1) / sum;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    time = std::max(time, std::max(own[i], 1 - own[i]) / rates[i]);
  }
  std::vector<double> weights;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    weights.push_back(std::max(0.0, (time * rates[i] - own[i]) / (n - 2)));
  }
  return weights;
}

}  // namespace polyrail
