// This machine as a topology of one host, without measuring anything.
#pragma once

#include <string>
#include <vector>

#include <polyrail/status.hpp>

#include "topology/topology.hpp"

namespace polyrail {

struct ThisMachine {
  Topology topology;
  std::vector<std::string> warnings;
};

// The host by discovery, with the rails that the options in the environment allow. Their planes are
// not known: that takes a peer.
Result<ThisMachine> look_at_this_machine();

}  // namespace polyrail
