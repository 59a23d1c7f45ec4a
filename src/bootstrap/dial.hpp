// dial: how a member finds the root. All addresses are tried at once and again and again, since
// rank 0 may start later; whoever answers without knowing the key is passed over.
#pragma once

#include <vector>

#include <polyrail/status.hpp>

#include "src/bootstrap/setup.hpp"
#include "src/bootstrap/wire.hpp"

namespace polyrail::bootstrap {

struct Dialed {
  Wire wire;   // the root has accepted this rank
  Claim root;  // who answered
};

// The failure lists every address with what became of it, or is the root's own verdict.
Result<Dialed> dial(const std::vector<Address>& addresses, const JoinSetup& setup,
                    const PhaseDeadline& deadline);

}  // namespace polyrail::bootstrap
