// IpAddress and Address: values with one text form each, and the way to and from sockaddr.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <polyrail/status.hpp>

namespace polyrail {

struct IpAddress {
  bool is_ipv6 = false;
  std::array<std::uint8_t, 16> bytes{};  // network order; the first four for IPv4
  std::string scope;                     // interface of a link-local address, else ""

  bool is_loopback() const;
  bool is_link_local() const;
  bool is_any() const;  // 0.0.0.0 or ::
  // True if the first `bits` bits are those of `network` and both are of one family.
  bool is_within(const IpAddress& network, int bits) const;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

struct Address {
  IpAddress ip;
  std::uint16_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
};

std::string to_text(const IpAddress& ip);     // "10.0.0.1", "fe80::1%eth0"
std::string to_text(const Address& address);  // "10.0.0.1:4711", "[fe80::1%eth0]:4711"
// Only numbers, no host names. The error quotes the text.
Result<IpAddress> parse_ip(std::string_view text);
Result<Address> parse_address(std::string_view text);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
// Fails if the scope is no interface of this host.
Result<SocketAddress> to_socket_address(const Address& address);
// Of family AF_INET or AF_INET6; an IPv4 address inside IPv6 becomes plain IPv4.
Address from_socket_address(const sockaddr* address);

}  // namespace polyrail
