// Network: the opened rails of this rank and what they reach; the outcome of start-up's first half.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <polyrail/bootstrap.hpp>
#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

#include "src/base/log.hpp"
#include "topology/topology.hpp"
#include "transports/transport.hpp"

namespace polyrail {

struct Joint {  // one peer over one rail
  int peer = -1;
  int plane = -1;
  int transport = -1;  // index into Network::transports
  Endpoint* endpoint = nullptr;
};

struct Network {
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<Joint> joints;
  // Hosts, rails with planes, rank placement; curves are filled in by calibrate().
  Topology topology;
};

// Collective: discovers and opens this rank's rails, tells the others, connects every pair of ranks
// over every rail that joins them (host-local kinds first), and numbers the planes. A rail counts
// only when both ends say it is up. Two ranks without any rail between them are an error on all.
Result<Network> connect(Bootstrap& bootstrap, const Options& options, Logger logger);

}  // namespace polyrail
