// The shm transport: processes of one host, through shared memory.
#pragma once

#include <memory>
#include <vector>

#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

#include "src/base/log.hpp"
#include "topology/rail.hpp"
#include "transports/transport.hpp"

namespace polyrail {

Result<std::vector<Rail>> discover_shm(const Options& options);
Result<std::unique_ptr<Transport>> open_shm(const Rail& rail, const TransportContext& context,
                                            const Options& options, Logger logger);

}  // namespace polyrail
