// SocketAddress and RailAddress: an IP address with port as the kernel and as a peer see it.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <polyrail/status.hpp>

namespace polyrail::tcp {

// An IPv4 or IPv6 address with port. Link-local IPv6 carries the index of a local device.
class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t bytes);
  // From text without port, "10.0.0.1" or "fe80::1" (what follows a '%' is ignored). A link-local
  // address gets the scope of the device, unless that is "".
  static Result<SocketAddress> parse(std::string_view ip, const std::string& device);

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t raw_bytes() const;
  int family() const { return storage_.ss_family; }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  // Device index of a link-local IPv6 address; no effect on others.
  void set_scope(std::uint32_t device_index);
  std::uint32_t scope() const;
  // The address in network order: 4 or 16 bytes.
  std::string_view ip_bytes() const;
  bool is_loopback() const;
  bool is_link_local() const;  // IPv6 only
  // "10.0.0.1" or "fe80::1%eth0", and the same with port: "10.0.0.1:4711", "[fe80::1%eth0]:4711".
  std::string ip_text() const;
  std::string text() const;

 private:
  sockaddr_storage storage_{};
};

// Names this network stack among all: two ranks with the same value share loopback addresses.
using HostIdentity = std::array<std::uint8_t, 16>;
HostIdentity host_identity();

// What Transport::address() carries: where the rail listens, and on which host.
struct RailAddress {
  SocketAddress socket;
  HostIdentity host{};

  std::string to_bytes() const;
  static Result<RailAddress> from_bytes(std::string_view bytes);
};

// Why a rail at `own` can certainly not reach `peer`; kOk if only trying can tell.
Status check_reachable(const RailAddress& own, const RailAddress& peer);

}  // namespace polyrail::tcp
