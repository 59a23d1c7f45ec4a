// admit_ranks: how the root lets the other ranks in and keeps strangers out.
//
// One thread, one poll loop, nothing blocks: silent and slow callers cost a descriptor for a few
// seconds and never the time of a real rank.
#pragma once

#include <vector>

#include <polyrail/status.hpp>

#include "src/bootstrap/setup.hpp"
#include "src/bootstrap/wire.hpp"

namespace polyrail::bootstrap {

struct Member {
  Wire wire;
  Claim claim;
};

// The members by rank, rank 1 first. A failure has been told to all who could be reached.
Result<std::vector<Member>> admit_ranks(std::vector<BoundSocket> sockets, const JoinSetup& setup);

}  // namespace polyrail::bootstrap
