// The ports that make_unique_id keeps until rank 0 of the same process takes them over.
#pragma once

#include <vector>

#include <polyrail/bootstrap.hpp>

#include "src/bootstrap/socket.hpp"

namespace polyrail::bootstrap {

// The one table of the process, because an id is only bytes that pass through the user's hands. It
// remembers the latest 64 ids; the ports of older ones are given back. Any thread.
void keep_sockets(const UniqueId& id, std::vector<BoundSocket> sockets);
// Empty if the id was made elsewhere or its sockets were taken before.
std::vector<BoundSocket> take_sockets(const UniqueId& id);

}  // namespace polyrail::bootstrap
