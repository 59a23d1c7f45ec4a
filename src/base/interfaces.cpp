#include "src/base/interfaces.hpp"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace polyrail {
namespace {

// One item of the option: an interface's name or a block of addresses.
struct Pattern {
  std::string name;
  bool is_exact = false;
  bool is_block = false;
  IpAddress network;
  int bits = 0;

  bool matches(const InterfaceAddress& address) const {
    if (is_block) return address.ip.is_within(network, bits);
    return is_exact ? address.interface == name : address.interface.starts_with(name);
  }
};

struct Selection {
  bool excludes = false;
  std::vector<Pattern> patterns;

  bool matches(const InterfaceAddress& address) const {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const Pattern& pattern) { return pattern.matches(address); });
  }
};

Status bad_option(std::string_view option, const std::string& what) {
  return {StatusCode::kInvalidArgument,
          "option interfaces: '" + std::string(option) + "': " + what};
}

Result<Pattern> parse_pattern(std::string_view item, std::string_view option) {
  Pattern pattern;
  const std::size_t slash = item.find('/');
  const Result<IpAddress> ip = parse_ip(item.substr(0, slash));
  if (ip.is_ok()) {
    const int most_bits = ip.value().is_ipv6 ? 128 : 32;
    pattern.is_block = true;
    pattern.network = ip.value();
    pattern.bits = most_bits;
    if (slash != std::string_view::npos) {
      const std::string_view bits = item.substr(slash + 1);
      const auto [end, error] =
          std::from_chars(bits.data(), bits.data() + bits.size(), pattern.bits);
      if (error != std::errc() || end != bits.data() + bits.size() || pattern.bits < 0 ||
          pattern.bits > most_bits) {
        return bad_option(option, "'" + std::string(item) + "' needs a prefix length from 0 to " +
                                      std::to_string(most_bits));
      }
    }
    return pattern;
  }
  if (slash != std::string_view::npos) {
    return bad_option(option, "'" + std::string(item) + "' is no block of addresses");
  }
  pattern.is_exact = item.starts_with('=');
  pattern.name = item.substr(pattern.is_exact ? 1 : 0);
  if (pattern.name.empty()) return bad_option(option, "an item is empty");
  return pattern;
}

Result<Selection> parse_selection(std::string_view option) {
  Selection selection;
  selection.excludes = option.starts_with('^');
  std::string_view rest = option;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    // The first ^ is for the whole list; repeating it at each item does no harm.
    if (item.starts_with('^')) {
      if (!selection.excludes) {
        return bad_option(option, "^ stands at the beginning, for the whole list");
      }
      item.remove_prefix(1);
    }
    Result<Pattern> pattern = parse_pattern(item, option);
    if (!pattern.is_ok()) return pattern.status();
    selection.patterns.push_back(std::move(pattern).value());
  }
  return selection;
}

int count_bits(const sockaddr* mask) {
  if (mask == nullptr || (mask->sa_family != AF_INET && mask->sa_family != AF_INET6)) return 0;
  const IpAddress ip = from_socket_address(mask).ip;
  int bits = 0;
  for (std::uint8_t byte : ip.bytes) bits += std::popcount(byte);
  return bits;
}

std::string describe(const std::vector<InterfaceAddress>& addresses) {
  std::string text;
  for (const InterfaceAddress& address : addresses) {
    if (!text.empty()) text += ", ";
    text += address.interface + " " + to_text(address.ip) + (address.is_running ? "" : " (down)");
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Result<std::vector<InterfaceAddress>> interface_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return Status(StatusCode::kSystemError,
                  std::string("list network interfaces: ") + std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<InterfaceAddress> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    InterfaceAddress address;
    address.interface = entry->ifa_name;
    address.ip = from_socket_address(entry->ifa_addr).ip;
    address.prefix_bits = count_bits(entry->ifa_netmask);
    address.is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0 || address.ip.is_loopback();
    constexpr unsigned kRunning = IFF_UP | IFF_RUNNING;
    address.is_running = (entry->ifa_flags & kRunning) == kRunning;
    addresses.push_back(std::move(address));
  }
  return addresses;
}

Result<std::vector<InterfaceAddress>> select_addresses(const std::vector<InterfaceAddress>& all,
                                                       std::string_view option) {
  const Result<Selection> parsed = parse_selection(option);
  if (!parsed.is_ok()) return parsed.status();
  const Selection& selection = parsed.value();
  std::vector<InterfaceAddress> chosen;
  std::vector<InterfaceAddress> loopback;
  for (const InterfaceAddress& address : all) {
    if (!address.is_running || address.ip.is_any()) continue;
    const bool is_named = selection.matches(address);
    const bool is_allowed = selection.patterns.empty() || is_named != selection.excludes;
    if (!is_allowed) continue;
    const bool is_wanted = !address.is_loopback || (is_named && !selection.excludes);
    (is_wanted ? chosen : loopback).push_back(address);
  }
  if (chosen.empty()) chosen = std::move(loopback);
  if (chosen.empty()) {
    const std::string why = option.empty() ? "no network interface is up"
                                           : "option interfaces: '" + std::string(option) +
                                                 "' leaves no address that is up";
    return Status(StatusCode::kInvalidArgument, why + "; this host has: " + describe(all));
  }
  return chosen;
}

}  // namespace polyrail
