// Rates and times as people write them: "2.5gbit", "10GBps", "25us".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace polyrail {

// How a rate is spoken of: network rails in bits, memory and GPU paths in bytes.
enum class RateStyle { kBits, kBytes };

// Bytes per second from "1gbit", "500mbit", "64kbit", "10GBps", "800MBps", "5kBps" or "100Bps"
// (decimal prefixes); nothing if it is not such a text or lies outside 1 B/s to 1e18 B/s.
std::optional<double> parse_rate(std::string_view text);
// Microseconds from "300ns", "25us", "1.5ms" or "2s"; nothing below zero or above 1e15 us.
std::optional<double> parse_time_us(std::string_view text);

// The shortest text that parses back to exactly this value, for files.
std::string rate_text(double bytes_per_s, RateStyle style);
std::string time_text(double time_us);

// Three digits, for people: "2.5 Gbit/s", "10 GB/s", "1.2 ms"; "-" for a rate that is not known.
std::string readable_rate(double bytes_per_s, RateStyle style);
std::string readable_time(double time_us);

inline constexpr const char* kRateExpected = "a rate such as 2.5gbit, 500mbit, 10GBps or 800MBps";
inline constexpr const char* kTimeExpected = "a time such as 300ns, 25us or 1.5ms";

}  // namespace polyrail
