// Sockets of a rail: made so that their bytes leave and enter by the rail's device only.
#pragma once

#include <string>

#include <polyrail/status.hpp>

#include "topology/rail.hpp"
#include "transports/tcp/address.hpp"
#include "transports/tcp/descriptor.hpp"

namespace polyrail::tcp {

// The device and address that all sockets of a rail are bound to.
struct SocketPlace {
  std::string device;
  SocketAddress address;  // port 0
};

struct Listener {
  Descriptor fd;
  SocketAddress address;  // with the port that the system chose
};

// A non-blocking listener on the rail's address and device, never on all addresses.
Result<Listener> listen_at(const SocketPlace& place);
// A non-blocking socket that is being connected to `remote`. Finished when it is writable.
Result<Descriptor> dial(const SocketPlace& place, const SocketAddress& remote);
// What both dialed and accepted sockets need: no delay, and the loss of a silent peer noticed.
void set_stream_options(int fd);
// Closing it will drop what the peer has not taken, and tell it at once.
void reset_on_close(int fd);

SocketAddress local_address(int fd);
// "10.0.0.1:4711 (eth0) -> 10.0.0.2:4712"; without the local port if it is 0.
std::string describe_path(const SocketAddress& local, const std::string& device,
                          const SocketAddress& remote);
Status system_error(const std::string& attempted, int error_number);

}  // namespace polyrail::tcp
