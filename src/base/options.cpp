#include <polyrail/options.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <vector>

extern char** environ;

namespace polyrail {
namespace {

using Text = std::string Options::*;
using Integer = std::int64_t Options::*;
using Bool = bool Options::*;

struct Field {
  OptionRow row;
  Text text = nullptr;
  Integer integer = nullptr;
  Bool flag = nullptr;
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::string_view choices;  // "a|b|c", "" for any text

  constexpr Field(std::string_view name, Text member, std::string_view fallback,
                  std::string_view choices_, std::string_view sentence)
      : row{name, "text", fallback, "", sentence}, text(member), choices(choices_) {}
  constexpr Field(std::string_view name, Integer member, std::int64_t least_, std::int64_t most_,
                  std::string_view fallback, std::string_view unit, std::string_view sentence)
      : row{name, "integer", fallback, unit, sentence},
        integer(member),
        least(least_),
        most(most_) {}
  constexpr Field(std::string_view name, Bool member, std::string_view fallback,
                  std::string_view sentence)
      : row{name, "bool", fallback, "", sentence}, flag(member) {}
};

constexpr std::int64_t kDayMs = 24LL * 3600 * 1000;

constexpr Field kFields[] = {
    {"transports", &Options::transports, "loopback,shm,tcp", "",
     "Kinds of rails that may be used, comma-separated."},
    {"interfaces", &Options::interfaces, "", "",
     "Network interfaces: names (prefix match, =exact), CIDR blocks; a leading ^ excludes."},
    {"rails_max", &Options::rails_max, 0, 1024, "0", "rails",
     "Most rails between two hosts; 0 for all that join them."},
    {"fault", &Options::fault, "", "", "Harm done to rails on purpose, for tests."},
    {"virtual_rails", &Options::virtual_rails, 1, 64, "1", "rails",
     "How many rails the host-local transports offer, for tests with `fault`."},
    {"tcp_sockets", &Options::tcp_sockets, 1, 16, "1", "sockets",
     "TCP connections per peer and rail."},
    {"algorithm", &Options::algorithm, "", "",
     "Use this algorithm (ring, direct, ...) in collectives that have it."},
    {"deterministic", &Options::deterministic, "false",
     "Combine operands in rank order, so that results depend on nothing but inputs and ranks."},
    {"calibration_ms", &Options::calibration_ms, 0, 60000, "300", "ms",
     "Longest time for measuring the rails at start-up; 0: nominal values, corrected by traffic."},
    {"split_by_measurement", &Options::split_by_measurement, "true",
     "Correct the split over the rails by what running operations measure."},
    {"progress", &Options::progress, "auto", "auto|caller|thread",
     "Who moves the bytes: the caller inside waits, a thread of the library, or a thread only for "
     "asynchronous work."},
    {"spin_us", &Options::spin_us, -1, 1000000, "-1", "us",
     "How long to look for news before sleeping; -1: as long as it pays."},
    {"start_timeout_ms", &Options::start_timeout_ms, 1, kDayMs, "30000", "ms",
     "Deadline of each phase of start-up."},
    {"operation_timeout_ms", &Options::operation_timeout_ms, 1, 30 * kDayMs, "600000", "ms",
     "Deadline of one operation; the report names the ranks that are missing."},
    {"log_level", &Options::log_level, "warn", "trace|debug|info|warn|error|off",
     "Least level of messages that are written."},
    {"log_file", &Options::log_file, "", "", "File for log messages; empty: standard error."},
};

const Field* find_field(std::string_view name) {
  for (const Field& field : kFields) {
    if (field.row.name == name) return &field;
  }
  return nullptr;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string_view nearest_name(std::string_view name) {
  std::string_view best;
  std::size_t least = ~std::size_t{0};
  for (const Field& field : kFields) {
    const std::size_t distance = edit_distance(name, field.row.name);
    if (distance < least) {
      least = distance;
      best = field.row.name;
    }
  }
  return best;
}

bool is_choice(std::string_view choices, std::string_view value) {
  while (!choices.empty()) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
  return false;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

Status bad_value(const Field& field, std::string_view value, const std::string& wanted) {
  return {StatusCode::kInvalidArgument, "option " + std::string(field.row.name) + ": '" +
                                            std::string(value) + "' is not " + wanted};
}

Status read_file(Options& options, const char* path) {
  std::ifstream file(path);
  if (!file) {
    return {StatusCode::kInvalidArgument,
            std::string("cannot read the config file '") + path + "' (POLYRAIL_CONFIG)"};
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = trim(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    const std::string where = std::string(path) + ":" + std::to_string(number) + ": ";
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) {
      return {StatusCode::kInvalidArgument, where + "expected 'name = value'"};
    }
    const Status status =
        set_option(options, trim(text.substr(0, equals)), trim(text.substr(equals + 1)));
    if (!status.is_ok()) return {status.code(), where + status.message()};
  }
  return ok();
}

// Variables that belong to Polyrail but are no options.
constexpr std::string_view kOtherVariables[] = {"config", "key", "unique_id"};

}  // namespace

std::span<const OptionRow> option_rows() {
  static const auto kRows = [] {
    std::vector<OptionRow> rows;
    for (const Field& field : kFields) rows.push_back(field.row);
    return rows;
  }();
  return kRows;
}

Status set_option(Options& options, std::string_view name, std::string_view value) {
  const Field* field = find_field(name);
  if (field == nullptr) {
    return {StatusCode::kInvalidArgument, "there is no option '" + std::string(name) +
                                              "'; the nearest is '" +
                                              std::string(nearest_name(name)) + "'"};
  }
  if (field->text != nullptr) {
    if (!field->choices.empty() && !is_choice(field->choices, value)) {
      return bad_value(*field, value, "one of " + std::string(field->choices));
    }
    options.*field->text = std::string(value);
  } else if (field->flag != nullptr) {
    if (value == "1" || value == "true" || value == "yes" || value == "on") {
      options.*field->flag = true;
    } else if (value == "0" || value == "false" || value == "no" || value == "off") {
      options.*field->flag = false;
    } else {
      return bad_value(*field, value, "true or false");
    }
  } else {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < field->least ||
        number > field->most) {
      return bad_value(
          *field, value,
          "an integer from " + std::to_string(field->least) + " to " + std::to_string(field->most));
    }
    options.*field->integer = number;
  }
  return ok();
}

Status check_options(const Options& options) {
  Options copy;
  for (const Field& field : kFields) {
    const Status status = set_option(copy, field.row.name, option_text(options, field.row.name));
    if (!status.is_ok()) return status;
  }
  return ok();
}

std::string option_text(const Options& options, std::string_view name) {
  const Field* field = find_field(name);
  if (field == nullptr) return "";
  if (field->text != nullptr) return options.*field->text;
  if (field->flag != nullptr) return options.*field->flag ? "true" : "false";
  return std::to_string(options.*field->integer);
}

Result<Options> options_from_environment() {
  Options options;
  if (const char* path = std::getenv("POLYRAIL_CONFIG"); path != nullptr && *path != '\0') {
    if (Status status = read_file(options, path); !status.is_ok()) return status;
  }
  constexpr std::string_view kPrefix = "POLYRAIL_";
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    std::string name(text.substr(kPrefix.size(), equals - kPrefix.size()));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (std::find(std::begin(kOtherVariables), std::end(kOtherVariables), name) !=
        std::end(kOtherVariables)) {
      continue;
    }
    if (Status status = set_option(options, name, text.substr(equals + 1)); !status.is_ok()) {
      return Status(status.code(), status.message() + " (from the environment variable " +
                                       std::string(text.substr(0, equals)) + ")");
    }
  }
  return options;
}

}  // namespace polyrail
