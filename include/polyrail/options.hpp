// Options: everything a user may set, as one table of rows and one struct of values.
//
// Each row has a name; it is read from the environment as POLYRAIL_<NAME>, from a config file as
// "name = value", and may be set in the struct. `polyrail-info --options` prints the table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <polyrail/status.hpp>

namespace polyrail {

struct Options {
  // --- which rails
  std::string transports = "loopback,shm,tcp";
  std::string interfaces;          // "eth0,eth1", "^docker0", "=eth0", "10.0.0.0/8"; "": all usable
  std::int64_t rails_max = 0;      // 0: no limit
  std::string fault;               // decorations for tests, see transports/fault/README.md
  std::int64_t virtual_rails = 1;  // how many rails loopback and shm offer (for tests with `fault`)
  std::int64_t tcp_sockets = 1;    // connections per peer and rail
  // --- planning
  std::string algorithm;  // "": the planner chooses
  // Results are the same bits for the same inputs and number of ranks, whatever the rails, their
  // speeds, the placement or the timing. Otherwise they may differ from start to start (never
  // between ranks), because the order of operands depends on the plan.
  bool deterministic = false;
  std::int64_t calibration_ms = 300;
  bool split_by_measurement = true;
  // --- progress
  std::string progress = "auto";  // caller | thread | auto (thread only for asynchronous work)
  std::int64_t spin_us = -1;      // -1: adaptive; 0: never spin
  // --- deadlines
  std::int64_t start_timeout_ms = 30000;
  std::int64_t operation_timeout_ms = 600000;
  // --- what is told
  std::string log_level = "warn";  // trace debug info warn error off
  std::string log_file;            // "": standard error

  friend bool operator==(const Options&, const Options&) = default;
};

struct OptionRow {
  std::string_view name;      // "spin_us"; the environment variable is POLYRAIL_SPIN_US
  std::string_view type;      // "text", "integer", "bool"
  std::string_view fallback;  // the default, as text
  std::string_view unit;      // "us", "ms", "" ...
  std::string_view sentence;
};

std::span<const OptionRow> option_rows();
// Sets one option from text. An unknown name or a bad value is an error that names both.
Status set_option(Options& options, std::string_view name, std::string_view value);
// Whether all values are allowed, for options that were set in the struct.
Status check_options(const Options& options);
// The value of one option as text; "" for an unknown name.
std::string option_text(const Options& options, std::string_view name);
// Defaults, then the file named by POLYRAIL_CONFIG, then POLYRAIL_* from the environment. An
// unknown POLYRAIL_ variable is an error that names the nearest option.
Result<Options> options_from_environment();

}  // namespace polyrail
