// The transports of this build: a table with one row per kind.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

#include "src/base/log.hpp"
#include "topology/rail.hpp"
#include "transports/transport.hpp"

namespace polyrail {

struct TransportKind {
  std::string_view name;  // as in the option `transports`
  // The rails of this host that this kind could serve, whether or not a peer can be reached.
  Result<std::vector<Rail>> (*discover)(const Options& options);
  // Opens one of them. `rail` is a value that discover returned.
  Result<std::unique_ptr<Transport>> (*open)(const Rail& rail, const TransportContext& context,
                                             const Options& options, Logger logger);
};

// In order of preference: the first kind that joins two ranks of one host serves them.
std::span<const TransportKind> builtin_transports();

// Those that a comma-separated list names, in its order; fails for a name that is not in this
// build.
Result<std::vector<TransportKind>> transports_named(std::string_view list);

}  // namespace polyrail
