#include "topology/rail.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace polyrail {

namespace {

struct KindRow {
  std::string_view name;
  double nominal_latency_us;
};

// By value of RailKind.
constexpr std::array<KindRow, 6> kKinds = {{
    {"loopback", 0.3},
    {"shm", 0.5},
    {"tcp", 25},
    {"ucx", 5},
    {"verbs", 2},
    {"cuda_ipc", 3},
}};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Where linear() puts its second point: far out, so that its rate survives rounding.
constexpr std::uint64_t kLinearSpanBytes = std::uint64_t{1} << 30;

}  // namespace

std::string_view name(RailKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < kKinds.size() ? kKinds[index].name : "unknown";
}

std::optional<RailKind> parse_rail_kind(std::string_view text) {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].name == text) return static_cast<RailKind>(i);
  }
  return std::nullopt;
}

double nominal_latency_us(RailKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < kKinds.size() ? kKinds[index].nominal_latency_us : 0;
}

std::string_view name(Provenance provenance) {
  return provenance == Provenance::kMeasured ? "measured" : "nominal";
}

CostCurve CostCurve::linear(double latency_us, double bytes_per_s) {
  if (!(bytes_per_s > 0)) return {};
  const double span_us = static_cast<double>(kLinearSpanBytes) * 1e6 / bytes_per_s;
  return {{{0, latency_us}, {kLinearSpanBytes, latency_us + span_us}}};
}

double CostCurve::bytes_per_s() const {
  if (points.empty()) return 0;
  if (points.size() == 1) return kInfinity;
  const Point& from = points[points.size() - 2];
  const Point& to = points.back();
  const double span_us = to.time_us - from.time_us;
  return span_us > 0 ? static_cast<double>(to.bytes - from.bytes) * 1e6 / span_us : kInfinity;
}

double CostCurve::time_us(double bytes) const {
  if (points.size() == 1 || bytes <= static_cast<double>(points.front().bytes)) {
    return points.front().time_us;
  }
  // The segment that ends at or behind `bytes`; the last one also serves what lies beyond it.
  std::size_t end = 1;
  while (end + 1 < points.size() && static_cast<double>(points[end].bytes) < bytes) ++end;
  const Point& from = points[end - 1];
  const Point& to = points[end];
  const double part =
      (bytes - static_cast<double>(from.bytes)) / static_cast<double>(to.bytes - from.bytes);
  // lerp is exact at both points, monotonic, and also right beyond the segment.
  return std::lerp(from.time_us, to.time_us, part);
}

double CostCurve::bytes_within(double time_us) const {
  if (points.empty() || !(time_us >= points.front().time_us)) return 0;
  if (points.size() == 1) return kInfinity;
  // The segment that begins at the last point within the time: of a flat stretch, its far end.
  std::size_t begin = points.size() - 1;
  while (points[begin].time_us > time_us) --begin;
  if (begin + 1 == points.size()) {
    const Point& last = points[begin];
    const Point& before = points[begin - 1];
    const double span_us = last.time_us - before.time_us;
    if (!(span_us > 0)) return kInfinity;
    const double span_bytes = static_cast<double>(last.bytes - before.bytes);
    return static_cast<double>(last.bytes) + (time_us - last.time_us) / span_us * span_bytes;
  }
  const Point& from = points[begin];
  const Point& to = points[begin + 1];
  const double part = (time_us - from.time_us) / (to.time_us - from.time_us);
  return std::lerp(static_cast<double>(from.bytes), static_cast<double>(to.bytes), part);
}

}  // namespace polyrail
