// Prints the .topo format. Apart from the parser because they share only the grammar in text.hpp.
#include <array>
#include <charconv>
#include <optional>

#include "topology/lines.hpp"
#include "topology/text.hpp"
#include "topology/units.hpp"

namespace polyrail {

namespace {

constexpr std::size_t kLineColumns = 100;

RateStyle rate_style(RailKind kind) {
  return is_host_local(kind) ? RateStyle::kBytes : RateStyle::kBits;
}

void add_text(std::string& line, const char* key, const std::string& value) {
  if (!value.empty()) line += std::string(" ") + key + " " + topo::quoted(value);
}

void add_number(std::string& line, const char* key, int value, int unknown) {
  if (value != unknown) line += std::string(" ") + key + " " + std::to_string(value);
}

// The rate with the fewest digits that makes this curve by CostCurve::linear, if there is one.
std::optional<double> linear_rate(const CostCurve& curve) {
  if (curve.points.size() != 2) return std::nullopt;
  const double rate = curve.bytes_per_s();
  for (int digits = 3; digits <= 17; ++digits) {
    std::array<char, 40> buffer{};
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), rate,
                                            std::chars_format::general, digits);
    double rounded = 0;
    std::from_chars(buffer.data(), end, rounded);
    if (CostCurve::linear(curve.latency_us(), rounded) != curve) continue;
    const bool is_in_range = parse_rate(rate_text(rounded, RateStyle::kBytes)) == rounded;
    return is_in_range ? std::optional<double>(rounded) : std::nullopt;
  }
  return std::nullopt;
}

std::string rail_line(const Rail& rail) {
  std::string line = "  rail " + topo::quoted(rail.name) + " " + std::string(name(rail.kind));
  add_number(line, "plane", rail.plane, -1);
  add_text(line, "device", rail.device);
  add_text(line, "address", rail.address);
  add_text(line, "pci", rail.pci);
  add_number(line, "numa", rail.numa, -1);
  if (const std::optional<double> rate = linear_rate(rail.curve)) {
    line += " rate " + rate_text(*rate, rate_style(rail.kind));
    if (rail.curve.latency_us() != 0) line += " latency " + time_text(rail.curve.latency_us());
  } else if (!rail.curve.is_empty()) {
    line += " curve";
    for (const CostCurve::Point& point : rail.curve.points) {
      line += " " + std::to_string(point.bytes) + ":" + time_text(point.time_us);
    }
  }
  if (rail.message_us > 0) line += " message " + time_text(rail.message_us);
  if (rail.provenance == Provenance::kMeasured) line += " measured";
  return line + "\n";
}

// Runs of three and more as "host*count".
std::string rank_lines(const std::vector<int>& rank_hosts) {
  std::string text;
  std::string line;
  for (std::size_t i = 0; i < rank_hosts.size();) {
    std::size_t run = 1;
    while (i + run < rank_hosts.size() && rank_hosts[i + run] == rank_hosts[i]) ++run;
    if (run < 3) run = 1;
    std::string word = " " + std::to_string(rank_hosts[i]);
    if (run > 1) word += "*" + std::to_string(run);
    if (line.size() + word.size() > kLineColumns) {
      text += line + "\n";
      line.clear();
    }
    if (line.empty()) line = "ranks";
    line += word;
    i += run;
  }
  return line.empty() ? text : text + line + "\n";
}

}  // namespace

std::string to_text(const Topology& topology) {
  std::string text;
  for (const Host& host : topology.hosts) {
    std::string line = "host " + topo::quoted(host.name);
    add_number(line, "packages", host.package_count, 0);
    add_number(line, "numa", host.numa_count, 0);
    add_number(line, "cores", host.core_count, 0);
    if (host.copy_bytes_per_s > 0) {
      line += " copy " + rate_text(host.copy_bytes_per_s, RateStyle::kBytes);
    }
    text += line + "\n";
    for (const Gpu& gpu : host.gpus) {
      line = "  gpu " + topo::quoted(gpu.name);
      add_text(line, "pci", gpu.pci);
      add_number(line, "numa", gpu.numa, -1);
      text += line + "\n";
    }
    for (const Rail& rail : host.rails) text += rail_line(rail);
  }
  text += rank_lines(topology.rank_hosts);
  if (topology.epoch != 0) text += "epoch " + std::to_string(topology.epoch) + "\n";
  return text;
}

}  // namespace polyrail
