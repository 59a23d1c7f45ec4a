// The grammar of the option `fault`.
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "transports/fault/fault.hpp"

namespace polyrail {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kSizes[] = {{"", 1},     {"B", 1},        {"KB", 1e3},        {"MB", 1e6},
                           {"GB", 1e9}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
constexpr Unit kRates[] = {
    {"B/s", 1},        {"KB/s", 1e3},        {"MB/s", 1e6},           {"GB/s", 1e9},
    {"KiB/s", 1024.0}, {"MiB/s", 1048576.0}, {"GiB/s", 1073741824.0}, {"bit/s", 0.125},
    {"kbit/s", 125.0}, {"Mbit/s", 125e3},    {"Gbit/s", 125e6}};
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit kPlain[] = {{"", 1}};

// A number of at least 0 with one of the units, at most `most` in base units.
std::optional<double> parse_number(std::string_view text, std::span<const Unit> units,
                                   double most) {
  double number = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || !std::isfinite(number) || std::signbit(number)) return {};
  const std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  for (const auto& known : units) {
    if (known.name != unit) continue;
    const double value = number * known.factor;
    if (value > most) return {};
    return value;
  }
  return {};
}

struct Setting {
  std::string_view name;
  std::string_view form;  // what its value looks like, for errors
  bool (*set)(FaultClause& clause, std::string_view value);
};

constexpr double kMostBytes = 1e18;
constexpr double kMostNanoseconds = 3600e9;

bool set_size(std::uint64_t& field, std::string_view value, double least) {
  const auto number = parse_number(value, kSizes, kMostBytes);
  if (!number || *number < least) return false;
  field = static_cast<std::uint64_t>(*number);
  return true;
}

bool set_share(double& field, std::string_view value) {
  const auto number = parse_number(value, kPlain, 1);
  if (number) field = *number;
  return number.has_value();
}

constexpr Setting kSettings[] = {
    {"rate", "a rate above 0 like 100MB/s or 800Mbit/s",
     [](FaultClause& clause, std::string_view value) {
       const auto number = parse_number(value, kRates, kMostBytes);
       if (!number || *number < 1) return false;
       clause.bytes_per_s = *number;
       return true;
     }},
    {"burst", "a size like 64KiB",
     [](FaultClause& clause, std::string_view value) {
       return set_size(clause.burst_bytes, value, 0);
     }},
    {"delay", "a time of at most an hour like 1ms",
     [](FaultClause& clause, std::string_view value) {
       const auto number = parse_number(value, kTimes, kMostNanoseconds);
       if (number) clause.delay = std::chrono::nanoseconds(static_cast<std::int64_t>(*number));
       return number.has_value();
     }},
    {"drop", "a share from 0 to 1",
     [](FaultClause& clause, std::string_view value) { return set_share(clause.drop, value); }},
    {"duplicate", "a share from 0 to 1",
     [](FaultClause& clause, std::string_view value) {
       return set_share(clause.duplicate, value);
     }},
    {"reorder", "a number of slices from 2 to 64",
     [](FaultClause& clause, std::string_view value) {
       const auto number = parse_number(value, kPlain, 64);
       if (!number || *number < 2 || *number != std::floor(*number)) return false;
       clause.reorder = static_cast<int>(*number);
       return true;
     }},
    {"seed", "a whole number",
     [](FaultClause& clause, std::string_view value) {
       const auto* const end = value.data() + value.size();
       const auto parsed = std::from_chars(value.data(), end, clause.seed);
       return parsed.ec == std::errc() && parsed.ptr == end;
     }},
    {"down_after", "a size above 0 like 10MB",
     [](FaultClause& clause, std::string_view value) {
       return set_size(clause.down_after_bytes, value, 1);
     }},
};

Status wrong(std::string_view word, std::string_view clause, const std::string& why) {
  return {StatusCode::kInvalidArgument, "option fault: '" + std::string(word) + "' in clause '" +
                                            std::string(clause) + "' " + why};
}

// Cuts the text up to the next separator off; the rest stays in `text`.
std::string_view cut(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const auto head = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return head;
}

Status apply(FaultClause& clause, std::string_view word, std::string_view clause_text) {
  auto value = word;
  const auto name = cut(value, '=');
  std::string known;
  for (const auto& setting : kSettings) {
    if (setting.name == name) {
      if (setting.set(clause, value)) return ok();
      return wrong(word, clause_text, "needs " + std::string(setting.form));
    }
    known += (known.empty() ? "" : " ") + std::string(setting.name);
  }
  return wrong(word, clause_text, "is no setting; there are " + known);
}

Result<FaultClause> parse_clause(std::string_view text) {
  FaultClause clause;
  auto settings = text;
  clause.rails = cut(settings, ':');
  if (clause.rails.empty()) return wrong(text, text, "does not begin with a rail name");
  if (settings.empty()) return wrong(clause.rails, text, "has no settings after it");
  while (!settings.empty()) {
    const auto status = apply(clause, cut(settings, ','), text);
    if (!status.is_ok()) return status;
  }
  return clause;
}

}  // namespace

Result<FaultSpec> parse_fault_spec(std::string_view text) {
  FaultSpec spec;
  while (!text.empty()) {
    auto clause = parse_clause(cut(text, ';'));
    if (!clause.is_ok()) return clause.status();
    spec.clauses.push_back(std::move(clause).value());
  }
  return spec;
}

bool matches(const FaultClause& clause, std::string_view rail_name) {
  const std::string_view pattern = clause.rails;
  // After a mismatch the last * takes one character more.
  std::size_t at = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_end = 0;
  for (std::size_t i = 0; i < rail_name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      star_end = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == rail_name[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace polyrail
