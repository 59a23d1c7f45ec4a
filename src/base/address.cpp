#include "src/base/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "src/base/assert.hpp"

namespace polyrail {
namespace {

Status not_an(const char* what, std::string_view text) {
  return {StatusCode::kInvalidArgument, "'" + std::string(text) + "' is not " + what};
}

}  // namespace

bool IpAddress::is_loopback() const {
  if (!is_ipv6) return bytes[0] == 127;
  static constexpr std::array<std::uint8_t, 16> kLoopback = {0, 0, 0, 0, 0, 0, 0, 0,
                                                             0, 0, 0, 0, 0, 0, 0, 1};
  return bytes == kLoopback;
}

bool IpAddress::is_link_local() const {
  if (!is_ipv6) return bytes[0] == 169 && bytes[1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool IpAddress::is_any() const {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool IpAddress::is_within(const IpAddress& network, int bits) const {
  if (is_ipv6 != network.is_ipv6) return false;
  for (int i = 0; bits > 0; ++i, bits -= 8) {
    const int mask = bits >= 8 ? 0xff : 0xff << (8 - bits);
    if (((bytes[i] ^ network.bytes[i]) & mask) != 0) return false;
  }
  return true;
}

std::string to_text(const IpAddress& ip) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(ip.is_ipv6 ? AF_INET6 : AF_INET, ip.bytes.data(), text, sizeof(text));
  return ip.scope.empty() ? text : text + ("%" + ip.scope);
}

std::string to_text(const Address& address) {
  const std::string ip = to_text(address.ip);
  return (address.ip.is_ipv6 ? "[" + ip + "]" : ip) + ":" + std::to_string(address.port);
}

Result<IpAddress> parse_ip(std::string_view text) {
  const std::size_t percent = text.find('%');
  const std::string number(text.substr(0, percent));
  IpAddress ip;
  ip.is_ipv6 = number.find(':') != std::string::npos;
  if (inet_pton(ip.is_ipv6 ? AF_INET6 : AF_INET, number.c_str(), ip.bytes.data()) != 1 ||
      number.find('\0') != std::string::npos) {
    return not_an("an IP address", text);
  }
  if (percent != std::string_view::npos) {
    ip.scope = text.substr(percent + 1);
    const bool is_name = !ip.scope.empty() && ip.scope.size() < IF_NAMESIZE &&
                         std::all_of(ip.scope.begin(), ip.scope.end(),
                                     [](char c) { return c > ' ' && c < 127 && c != '/'; });
    if (!ip.is_ipv6 || !ip.is_link_local() || !is_name) return not_an("an IP address", text);
  }
  return ip;
}

Result<Address> parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return not_an("an IP address with a port", text);
  std::string_view ip_text = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  const bool has_brackets = ip_text.size() >= 2 && ip_text.front() == '[' && ip_text.back() == ']';
  if (has_brackets) ip_text = ip_text.substr(1, ip_text.size() - 2);
  const Result<IpAddress> ip = parse_ip(ip_text);
  Address address;
  const auto [end, error] =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), address.port);
  if (!ip.is_ok() || ip.value().is_ipv6 != has_brackets || error != std::errc() ||
      end != port_text.data() + port_text.size() || address.port == 0) {
    return not_an("an IP address with a port", text);
  }
  address.ip = ip.value();
  return address;
}

Result<SocketAddress> to_socket_address(const Address& address) {
  SocketAddress result;
  if (!address.ip.is_ipv6) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    std::memcpy(&v4.sin_addr, address.ip.bytes.data(), 4);
    std::memcpy(&result.storage, &v4, sizeof(v4));
    result.size = sizeof(v4);
    return result;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  std::memcpy(&v6.sin6_addr, address.ip.bytes.data(), 16);
  if (!address.ip.scope.empty()) {
    v6.sin6_scope_id = if_nametoindex(address.ip.scope.c_str());
    if (v6.sin6_scope_id == 0) {
      return Status(StatusCode::kSystemError,
                    to_text(address) + ": this host has no interface '" + address.ip.scope + "'");
    }
  }
  std::memcpy(&result.storage, &v6, sizeof(v6));
  result.size = sizeof(v6);
  return result;
}

Address from_socket_address(const sockaddr* address) {
  Address result;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof(v4));
    std::memcpy(result.ip.bytes.data(), &v4.sin_addr, 4);
    result.port = ntohs(v4.sin_port);
    return result;
  }
  PR_ASSERT(address->sa_family == AF_INET6);
  sockaddr_in6 v6;
  std::memcpy(&v6, address, sizeof(v6));
  result.port = ntohs(v6.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    std::memcpy(result.ip.bytes.data(), v6.sin6_addr.s6_addr + 12, 4);
    return result;
  }
  result.ip.is_ipv6 = true;
  std::memcpy(result.ip.bytes.data(), &v6.sin6_addr, 16);
  char name[IF_NAMESIZE] = "";
  if (result.ip.is_link_local() && v6.sin6_scope_id != 0 &&
      if_indextoname(v6.sin6_scope_id, name) != nullptr) {
    result.ip.scope = name;
  }
  return result;
}

}  // namespace polyrail
