// The addresses of this host's network interfaces, and which of them the option `interfaces`
// allows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <polyrail/status.hpp>

#include "src/base/address.hpp"

namespace polyrail {

struct InterfaceAddress {
  std::string interface;  // "eth0"
  IpAddress ip;           // with a scope if it is link-local
  int prefix_bits = 0;    // of its subnet
  bool is_loopback = false;
  bool is_running = false;  // up, with a carrier
  friend bool operator==(const InterfaceAddress&, const InterfaceAddress&) = default;
};

// All IPv4 and IPv6 addresses of this host, in the system's order.
Result<std::vector<InterfaceAddress>> interface_addresses();

// Those of `all` that run and that the option allows, in the same order. The option is a list of
// names (prefix match), "=name" (exact), addresses and CIDR blocks; with a leading ^ it excludes
// instead. The empty option allows all. Loopback is among them only if the option names it or
// nothing else is left. The error says what is wrong with the option, or what there was to choose
// from.
Result<std::vector<InterfaceAddress>> select_addresses(const std::vector<InterfaceAddress>& all,
                                                       std::string_view option);

}  // namespace polyrail
