// The fault decorator: any transport, made slower or worse on purpose. README.md has the grammar.
//
// It acts on what its own rank sends: a faulty rail needs the decorator at both ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

#include "transports/fault/control.hpp"
#include "transports/transport.hpp"

namespace polyrail {

// What is done to the rails whose name matches; nothing unless set.
struct FaultClause {
  std::string rails = "*";                // pattern of rail names: * is any text, ? any character
  double bytes_per_s = 0;                 // payload that leaves the rail; 0: as fast as it can
  std::uint64_t burst_bytes = 64 * 1024;  // sent at once after a pause
  std::chrono::nanoseconds delay{0};      // added to slices and controls
  double drop = 0;                        // share of slices that vanish
  double duplicate = 0;                   // share of slices that arrive twice
  int reorder = 0;                     // slices are drawn at random from this many; 0 and 1: never
  std::uint64_t seed = 1;              // of all that is random
  std::uint64_t down_after_bytes = 0;  // the rail fails when so much has left; 0: never
  friend bool operator==(const FaultClause&, const FaultClause&) = default;
};

struct FaultSpec {
  std::vector<FaultClause> clauses;
  friend bool operator==(const FaultSpec&, const FaultSpec&) = default;
};

// Reads the option `fault`. An error names the word that is wrong and its clause.
Result<FaultSpec> parse_fault_spec(std::string_view text);
bool matches(const FaultClause& clause, std::string_view rail_name);

using FaultClock = std::function<std::chrono::steady_clock::time_point()>;

// `control`, if any, must outlive the transport; several transports may obey one. A test may bring
// its own clock, but sleeping follows the true one.
Result<std::unique_ptr<Transport>> with_fault(std::unique_ptr<Transport> inner,
                                              const FaultClause& clause,
                                              FaultControl* control = nullptr,
                                              FaultClock clock = std::chrono::steady_clock::now);

// Applies each clause of the option `fault` that matches, the first one innermost; the transport
// itself if there is none.
Result<std::unique_ptr<Transport>> decorate(std::unique_ptr<Transport> transport,
                                            const Options& options);

}  // namespace polyrail
