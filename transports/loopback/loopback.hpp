// The loopback transport: ranks that are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

#include "src/base/log.hpp"
#include "topology/rail.hpp"
#include "transports/transport.hpp"

namespace polyrail {

Result<std::vector<Rail>> discover_loopback(const Options& options);
Result<std::unique_ptr<Transport>> open_loopback(const Rail& rail, const TransportContext& context,
                                                 const Options& options, Logger logger);

}  // namespace polyrail
