// The tcp transport: any two hosts, one rail per usable interface and address family.
#pragma once

#include <memory>
#include <vector>

#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

#include "src/base/log.hpp"
#include "topology/rail.hpp"
#include "transports/transport.hpp"

namespace polyrail {

Result<std::vector<Rail>> discover_tcp(const Options& options);
Result<std::unique_ptr<Transport>> open_tcp(const Rail& rail, const TransportContext& context,
                                            const Options& options, Logger logger);

}  // namespace polyrail
