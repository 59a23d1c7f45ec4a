// Interfaces and the option `interfaces`: which addresses of this host become tcp rails.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <polyrail/status.hpp>

#include "topology/rail.hpp"
#include "transports/tcp/address.hpp"

namespace polyrail::tcp {

// One address of one interface, as the system lists it.
struct InterfaceAddress {
  std::string device;
  SocketAddress address;
  bool is_usable = true;      // up, running, no part of a bridge or bond, address not in doubt
  bool is_temporary = false;  // IPv6: changes with time
};

// The option `interfaces`: "" takes all, "eth,ib0" names by prefix, "=eth0" the exact name,
// "10.0.0.0/8" or "fd00::/8" the addresses in a block, and a leading ^ all but the listed.
class InterfaceFilter {
 public:
  static Result<InterfaceFilter> parse(std::string_view text);

  bool takes(const InterfaceAddress& candidate) const;
  // The address is asked for as IPv6, by a block or as "eth0.ipv6", not only by its device.
  bool names_ipv6(const InterfaceAddress& candidate) const;
  bool takes_all() const { return entries_.empty(); }

 private:
  struct Entry {
    std::string name;
    bool is_exact = false;
    std::string block;  // address bytes in network order; empty: matches by name
    unsigned prefix_bits = 0;
  };
  static Result<Entry> parse_entry(std::string_view text);
  static bool is_in_block(const Entry& entry, const SocketAddress& address);
  static bool matches(const Entry& entry, const InterfaceAddress& candidate);

  std::vector<Entry> entries_;
  bool excludes_ = false;
};

// All addresses of the host's interfaces.
Result<std::vector<InterfaceAddress>> list_interfaces();

// One rail per interface. IPv6 is offered where there is no IPv4, since both are the same wire, or
// where the filter names it. Loopback comes last.
std::vector<Rail> select_rails(const std::vector<InterfaceAddress>& interfaces,
                               const InterfaceFilter& filter);

}  // namespace polyrail::tcp
