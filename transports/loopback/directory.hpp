// Directory: how the loopback transports of one process find each other.
//
// It is the project's one piece of process-wide state beside the system's own: what the network is
// to tcp. An address names an entry, never memory, so a stale or forged one finds nothing. Used
// when transports open, connect and close, never while bytes move.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include <polyrail/status.hpp>

#include "transports/loopback/wire.hpp"
#include "transports/transport.hpp"

namespace polyrail::loopback {

struct PortAddress {
  std::string process;   // random token and process number
  std::uint64_t id = 0;  // within the process
};

std::string to_text(const PortAddress& address);
// Only the form is judged here; whether such a port exists is not.
Result<PortAddress> parse_port_address(std::string_view text);

// What a connection attempt led to: one end of a wire.
struct WireEnd {
  std::shared_ptr<Wire> wire;  // shared by the two transports it joins
  int side = 0;
};

class Directory {
 public:
  // The one of this process.
  static Directory& instance();

  // Enters a transport; returns its address.
  PortAddress open(const TransportContext& context, std::shared_ptr<Waker> waker);
  // Takes it out and closes the wires that others have offered to it.
  void close(std::uint64_t id);
  // Joins the wire that the peer has offered to `own_id`, else offers one to the peer. Fails if
  // there is no such peer in this process or the two do not belong together.
  Result<WireEnd> connect(std::uint64_t own_id, int peer, const PortAddress& address);

 private:
  struct Port {
    TransportContext context;
    std::shared_ptr<Waker> waker;
    std::map<std::uint64_t, std::shared_ptr<Wire>> offers;  // by the id of who offers
  };

  Directory();
  std::string process() const;

  const std::string token_;  // random: process numbers repeat on other hosts
  std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, Port> ports_;
};

}  // namespace polyrail::loopback
