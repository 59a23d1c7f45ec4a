#include "transports/tcp/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <string>

#include "src/base/assert.hpp"

namespace polyrail::tcp {
namespace {

constexpr char kFormat = 1;  // first byte of an encoded RailAddress
constexpr std::size_t kEncodedHeadBytes = 1 + 1 + 2 + sizeof(HostIdentity);

const sockaddr_in& v4(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& v6(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in6&>(storage);
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t bytes) {
  PR_ASSERT(bytes <= sizeof(storage_));
  std::memcpy(&storage_, address, bytes);
}

Result<SocketAddress> SocketAddress::parse(std::string_view ip, const std::string& device) {
  const std::string bare(ip.substr(0, ip.find('%')));
  SocketAddress result;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  if (inet_pton(AF_INET, bare.c_str(), &four.sin_addr) == 1) {
    std::memcpy(&result.storage_, &four, sizeof(four));
    return result;
  }
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  if (inet_pton(AF_INET6, bare.c_str(), &six.sin6_addr) != 1) {
    return Status(StatusCode::kInvalidArgument, "'" + std::string(ip) + "' is no IP address");
  }
  std::memcpy(&result.storage_, &six, sizeof(six));
  if (result.is_link_local() && !device.empty()) {
    const unsigned index = if_nametoindex(device.c_str());
    if (index == 0) {
      return Status(StatusCode::kInvalidArgument, "address " + bare + ": there is no device '" +
                                                      device + "': " + std::strerror(errno));
    }
    result.set_scope(index);
  }
  return result;
}

socklen_t SocketAddress::raw_bytes() const {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::uint16_t SocketAddress::port() const {
  return ntohs(family() == AF_INET ? v4(storage_).sin_port : v6(storage_).sin6_port);
}

void SocketAddress::set_port(std::uint16_t port) {
  if (family() == AF_INET) {
    reinterpret_cast<sockaddr_in&>(storage_).sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6&>(storage_).sin6_port = htons(port);
  }
}

void SocketAddress::set_scope(std::uint32_t device_index) {
  if (is_link_local()) reinterpret_cast<sockaddr_in6&>(storage_).sin6_scope_id = device_index;
}

std::uint32_t SocketAddress::scope() const {
  return is_link_local() ? v6(storage_).sin6_scope_id : 0;
}

std::string_view SocketAddress::ip_bytes() const {
  if (family() == AF_INET) {
    return {reinterpret_cast<const char*>(&v4(storage_).sin_addr), sizeof(in_addr)};
  }
  return {reinterpret_cast<const char*>(&v6(storage_).sin6_addr), sizeof(in6_addr)};
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) return (ntohl(v4(storage_).sin_addr.s_addr) >> 24) == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6(storage_).sin6_addr);
}

bool SocketAddress::is_link_local() const {
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(storage_).sin6_addr);
}

std::string SocketAddress::ip_text() const {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(family(), ip_bytes().data(), text, sizeof(text));
  std::string result = text;
  if (scope() != 0) {
    char device[IF_NAMESIZE] = "?";
    if_indextoname(scope(), device);
    result += std::string("%") + device;
  }
  return result;
}

std::string SocketAddress::text() const {
  const std::string port_text = ":" + std::to_string(port());
  return family() == AF_INET ? ip_text() + port_text : "[" + ip_text() + "]" + port_text;
}

HostIdentity host_identity() {
  // The boot id tells machines apart, the network namespace tells apart containers of one machine.
  std::string seed;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> seed;
  struct stat space {};
  if (stat("/proc/thread-self/ns/net", &space) == 0) {
    seed += ":" + std::to_string(space.st_dev) + ":" + std::to_string(space.st_ino);
  }
  HostIdentity identity;
  crypto_generichash(identity.data(), identity.size(),
                     reinterpret_cast<const unsigned char*>(seed.data()), seed.size(), nullptr, 0);
  return identity;
}

std::string RailAddress::to_bytes() const {
  std::string bytes;
  bytes += kFormat;
  bytes += socket.family() == AF_INET ? '4' : '6';
  bytes += static_cast<char>(socket.port() & 0xFF);
  bytes += static_cast<char>(socket.port() >> 8);
  bytes.append(reinterpret_cast<const char*>(host.data()), host.size());
  bytes += socket.ip_bytes();
  return bytes;
}

Result<RailAddress> RailAddress::from_bytes(std::string_view bytes) {
  const Status garbage(StatusCode::kInvalidArgument,
                       "this is not the address of a tcp rail of this version (" +
                           std::to_string(bytes.size()) + " bytes)");
  if (bytes.size() < kEncodedHeadBytes || bytes[0] != kFormat) return garbage;
  const bool is_v4 = bytes[1] == '4';
  const std::size_t ip_bytes = is_v4 ? sizeof(in_addr) : sizeof(in6_addr);
  if ((!is_v4 && bytes[1] != '6') || bytes.size() != kEncodedHeadBytes + ip_bytes) return garbage;
  const auto port = static_cast<std::uint16_t>(static_cast<std::uint8_t>(bytes[2]) |
                                               static_cast<std::uint8_t>(bytes[3]) << 8);
  if (port == 0) return garbage;

  RailAddress result;
  std::memcpy(result.host.data(), bytes.data() + 4, result.host.size());
  const char* ip = bytes.data() + kEncodedHeadBytes;
  if (is_v4) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_addr, ip, ip_bytes);
    result.socket = SocketAddress(reinterpret_cast<const sockaddr*>(&four), sizeof(four));
  } else {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    std::memcpy(&six.sin6_addr, ip, ip_bytes);
    result.socket = SocketAddress(reinterpret_cast<const sockaddr*>(&six), sizeof(six));
  }
  result.socket.set_port(port);
  return result;
}

Status check_reachable(const RailAddress& own, const RailAddress& peer) {
  const std::string pair = own.socket.ip_text() + " and " + peer.socket.text();
  const auto no = [&pair](const char* why) {
    return Status(StatusCode::kInvalidArgument, pair + why);
  };
  const bool same_host = own.host == peer.host;
  if (own.socket.family() != peer.socket.family()) return no(" are of different address families");
  if (own.socket.is_loopback() != peer.socket.is_loopback()) {
    return no(": a loopback address joins only loopback addresses");
  }
  if (own.socket.is_loopback() && !same_host) {
    return no(" are loopback addresses of different hosts");
  }
  if (!own.socket.is_loopback() && same_host) {
    return no(" lie on the same host; its ranks meet over lo or shared memory, not over a NIC");
  }
  if (own.socket.is_link_local() != peer.socket.is_link_local()) {
    return no(": a link-local address joins only link-local addresses");
  }
  if (!same_host && own.socket.ip_bytes() == peer.socket.ip_bytes()) {
    return no(": both hosts use this address for themselves");
  }
  return ok();
}

}  // namespace polyrail::tcp
