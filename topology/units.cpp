#include "topology/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>

namespace polyrail {

namespace {

struct Unit {
  std::string_view text;
  double factor;  // to bytes per second, or to microseconds
};

constexpr std::array<Unit, 3> kBitUnits = {{{"gbit", 125e6}, {"mbit", 125e3}, {"kbit", 125}}};
constexpr std::array<Unit, 4> kByteUnits = {
    {{"GBps", 1e9}, {"MBps", 1e6}, {"kBps", 1e3}, {"Bps", 1}}};
constexpr std::array<Unit, 4> kTimeUnits = {{{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}}};

// The number in front of exactly one of the units, multiplied out.
std::optional<double> parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit_text(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : units) {
    if (unit.text == unit_text) return number * unit.factor;
  }
  return std::nullopt;
}

std::string shortest(double number) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return std::string(buffer.data(), end);
}

// In the first unit in which it is at least 1 and survives the way back; `fallback` has factor 1.
std::string exact(double value, std::span<const Unit> units, const Unit& fallback) {
  for (const Unit& unit : units) {
    const double number = value / unit.factor;
    if (number >= 1 && number * unit.factor == value) {
      return shortest(number) + std::string(unit.text);
    }
  }
  return shortest(value) + std::string(fallback.text);
}

struct Prefix {
  double factor;
  const char* text;
};

// Three significant digits without an exponent, in the first prefix in which it is at least 1.
std::string readable(double value, std::span<const Prefix> prefixes) {
  const Prefix* chosen = &prefixes.back();
  for (const Prefix& prefix : prefixes) {
    // 0.9995: what would be rounded to 1000 of the smaller prefix.
    if (value >= 0.9995 * prefix.factor) {
      chosen = &prefix;
      break;
    }
  }
  const double number = value / chosen->factor;
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), number >= 999.5 ? "%.0f%s" : "%.3g%s", number,
                chosen->text);
  return buffer.data();
}

}  // namespace

std::optional<double> parse_rate(std::string_view text) {
  std::optional<double> rate = parse(text, kBitUnits);
  if (!rate) rate = parse(text, kByteUnits);
  if (!rate || !(*rate >= 1 && *rate <= 1e18)) return std::nullopt;
  return rate;
}

std::optional<double> parse_time_us(std::string_view text) {
  const std::optional<double> time_us = parse(text, kTimeUnits);
  if (!time_us || !(*time_us >= 0 && *time_us <= 1e15)) return std::nullopt;
  return *time_us == 0 ? 0 : time_us;  // no negative zero
}

std::string rate_text(double bytes_per_s, RateStyle style) {
  const Unit& fallback = kByteUnits.back();
  return style == RateStyle::kBits ? exact(bytes_per_s, kBitUnits, fallback)
                                   : exact(bytes_per_s, kByteUnits, fallback);
}

std::string time_text(double time_us) {
  return shortest(time_us) + "us";
}

std::string readable_rate(double bytes_per_s, RateStyle style) {
  static constexpr std::array<Prefix, 5> kBits = {
      {{1e12, " Tbit/s"}, {1e9, " Gbit/s"}, {1e6, " Mbit/s"}, {1e3, " kbit/s"}, {1, " bit/s"}}};
  static constexpr std::array<Prefix, 5> kBytes = {
      {{1e12, " TB/s"}, {1e9, " GB/s"}, {1e6, " MB/s"}, {1e3, " kB/s"}, {1, " B/s"}}};
  if (!(bytes_per_s > 0)) return "-";
  if (std::isinf(bytes_per_s)) return "no limit";
  return style == RateStyle::kBits ? readable(bytes_per_s * 8, kBits)
                                   : readable(bytes_per_s, kBytes);
}

std::string readable_time(double time_us) {
  static constexpr std::array<Prefix, 4> kTimes = {
      {{1e6, " s"}, {1e3, " ms"}, {1, " us"}, {1e-3, " ns"}}};
  if (time_us == 0) return "0 us";
  return readable(time_us, kTimes);
}

}  // namespace polyrail
