#include "transports/tcp/interfaces.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "transports/tcp/socket.hpp"
#include "transports/tcp/tcp.hpp"

namespace polyrail::tcp {
namespace {

constexpr std::string_view kIpv6Suffix = ".ipv6";

Status bad_entry(std::string_view entry, const std::string& why) {
  return {StatusCode::kInvalidArgument, "option interfaces: '" + std::string(entry) + "' " + why};
}

// Flags of IPv6 addresses, from include/uapi/linux/if_addr.h.
constexpr unsigned kTemporary = 0x01;
constexpr unsigned kDuplicate = 0x08;
constexpr unsigned kDeprecated = 0x20;
constexpr unsigned kTentative = 0x40;

// By device and address, in the kernel's notation of 32 hex digits. getifaddrs leaves them out.
std::map<std::string, unsigned> ipv6_flags() {
  std::map<std::string, unsigned> result;
  std::ifstream file("/proc/net/if_inet6");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string address, index, prefix, scope, flags, device;
    if (fields >> address >> index >> prefix >> scope >> flags >> device) {
      result[device + " " + address] =
          static_cast<unsigned>(std::strtoul(flags.c_str(), nullptr, 16));
    }
  }
  return result;
}

std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (const char byte : bytes) {
    result += kDigits[static_cast<std::uint8_t>(byte) >> 4];
    result += kDigits[static_cast<std::uint8_t>(byte) & 15];
  }
  return result;
}

bool is_bridge_port(const std::string& device) {
  return access(("/sys/class/net/" + device + "/brport").c_str(), F_OK) == 0;
}

int numa_of(const std::string& device) {
  int numa = -1;
  std::ifstream("/sys/class/net/" + device + "/device/numa_node") >> numa;
  return numa;
}

// "0000:03:00.0" if the device sits on a PCI bus.
std::string pci_of(const std::string& device) {
  char target[512];
  const ssize_t bytes =
      readlink(("/sys/class/net/" + device + "/device").c_str(), target, sizeof(target));
  if (bytes <= 0) return "";
  const std::string_view path(target, static_cast<std::size_t>(bytes));
  const std::string_view last = path.substr(path.rfind('/') + 1);
  const bool is_pci = last.size() == 12 && last[4] == ':' && last[7] == ':' && last[10] == '.';
  return is_pci ? std::string(last) : "";
}

Rail make_rail(const InterfaceAddress& chosen, const std::string& name) {
  Rail rail;
  rail.name = name;
  rail.kind = RailKind::kTcp;
  rail.device = chosen.device;
  rail.address = chosen.address.ip_text();
  rail.numa = numa_of(chosen.device);
  rail.pci = pci_of(chosen.device);
  return rail;
}

// Lower is better: lasting before temporary, global before link-local.
int ipv6_rank(const InterfaceAddress& candidate) {
  return (candidate.address.is_link_local() ? 2 : 0) + (candidate.is_temporary ? 1 : 0);
}

}  // namespace

Result<InterfaceFilter> InterfaceFilter::parse(std::string_view text) {
  InterfaceFilter filter;
  if (text.empty()) return filter;
  filter.excludes_ = text.front() == '^';
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view entry = text.substr(0, comma);
    if (entry.starts_with('^')) {
      if (!filter.excludes_) {
        return bad_entry(entry,
                         "excludes, but the list begins with names to take; ^ stands in "
                         "front of the whole list");
      }
      entry.remove_prefix(1);
    }
    Result<Entry> parsed = parse_entry(entry);
    if (!parsed.is_ok()) return parsed.status();
    filter.entries_.push_back(std::move(parsed.value()));
    if (comma == std::string_view::npos) return filter;
    text.remove_prefix(comma + 1);
  }
}

Result<InterfaceFilter::Entry> InterfaceFilter::parse_entry(std::string_view text) {
  Entry entry;
  const std::size_t slash = text.find('/');
  const std::string_view ip = text.substr(0, slash);
  if (const auto address = SocketAddress::parse(ip, ""); address.is_ok()) {
    entry.block = address.value().ip_bytes();
  }
  if (slash != std::string_view::npos) {
    if (entry.block.empty()) {
      return bad_entry(text,
                       "is no block of addresses: '" + std::string(ip) + "' is no IP address");
    }
    const std::string_view bits = text.substr(slash + 1);
    const auto [end, error] =
        std::from_chars(bits.data(), bits.data() + bits.size(), entry.prefix_bits);
    if (error != std::errc() || end != bits.data() + bits.size() ||
        entry.prefix_bits > entry.block.size() * 8) {
      return bad_entry(text, "is no block of addresses: '" + std::string(bits) +
                                 "' is no number from 0 to " +
                                 std::to_string(entry.block.size() * 8));
    }
    return entry;
  }
  if (!entry.block.empty()) {
    entry.prefix_bits = static_cast<unsigned>(entry.block.size() * 8);
    return entry;
  }
  entry.is_exact = text.starts_with('=');
  entry.name = text.substr(entry.is_exact ? 1 : 0);
  if (entry.name.empty()) return bad_entry(text, "names no interface");
  if (entry.name.size() >= IFNAMSIZ + kIpv6Suffix.size() ||
      entry.name.find_first_of(" \t=^:") != std::string::npos) {
    return bad_entry(text, "is neither the name of an interface nor an address or a block of them");
  }
  return entry;
}

bool InterfaceFilter::is_in_block(const Entry& entry, const SocketAddress& address) {
  const std::string_view bytes = address.ip_bytes();
  if (entry.block.size() != bytes.size()) return false;
  for (unsigned bit = 0; bit < entry.prefix_bits; bit += 8) {
    const unsigned bits = std::min(8U, entry.prefix_bits - bit);
    const auto mask = static_cast<std::uint8_t>(0xFF00U >> bits);
    if (((static_cast<std::uint8_t>(entry.block[bit / 8]) ^
          static_cast<std::uint8_t>(bytes[bit / 8])) &
         mask) != 0) {
      return false;
    }
  }
  return true;
}

bool InterfaceFilter::matches(const Entry& entry, const InterfaceAddress& candidate) {
  if (!entry.block.empty()) return is_in_block(entry, candidate.address);
  const bool is_ipv6 = candidate.address.family() == AF_INET6;
  if (is_ipv6 && entry.name == candidate.device + std::string(kIpv6Suffix)) return true;
  return entry.is_exact ? candidate.device == entry.name : candidate.device.starts_with(entry.name);
}

bool InterfaceFilter::takes(const InterfaceAddress& candidate) const {
  if (entries_.empty()) return true;
  const bool is_listed = std::any_of(entries_.begin(), entries_.end(),
                                     [&](const Entry& entry) { return matches(entry, candidate); });
  return is_listed != excludes_;
}

bool InterfaceFilter::names_ipv6(const InterfaceAddress& candidate) const {
  if (excludes_ || candidate.address.family() != AF_INET6) return false;
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.block.empty() ? entry.name == candidate.device + std::string(kIpv6Suffix)
                               : is_in_block(entry, candidate.address);
  });
}

Result<std::vector<InterfaceAddress>> list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return system_error("list the network interfaces", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  const auto flags_of = ipv6_flags();
  std::vector<InterfaceAddress> result;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    InterfaceAddress found;
    // An IPv4 address may carry a label, "eth0:1".
    found.device = std::string(entry->ifa_name).substr(0, std::string(entry->ifa_name).find(':'));
    found.address = SocketAddress(entry->ifa_addr,
                                  family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    constexpr unsigned kNeeded = IFF_UP | IFF_RUNNING;
    found.is_usable = (entry->ifa_flags & kNeeded) == kNeeded &&
                      (entry->ifa_flags & IFF_SLAVE) == 0 && !is_bridge_port(found.device);
    if (family == AF_INET6) {
      const auto flags = flags_of.find(found.device + " " + hex(found.address.ip_bytes()));
      if (flags != flags_of.end()) {
        found.is_usable &= (flags->second & (kTentative | kDuplicate)) == 0;
        found.is_temporary = (flags->second & (kTemporary | kDeprecated)) != 0;
      }
    }
    result.push_back(std::move(found));
  }
  return result;
}

std::vector<Rail> select_rails(const std::vector<InterfaceAddress>& interfaces,
                               const InterfaceFilter& filter) {
  struct Choice {
    std::string device;
    const InterfaceAddress* v4 = nullptr;
    const InterfaceAddress* v6 = nullptr;
    bool is_v6_named = false;
  };
  std::vector<Choice> choices;  // in the order of the interfaces
  for (const InterfaceAddress& candidate : interfaces) {
    if (!candidate.is_usable || !filter.takes(candidate)) continue;
    auto choice = std::find_if(choices.begin(), choices.end(), [&](const Choice& existing) {
      return existing.device == candidate.device;
    });
    if (choice == choices.end()) {
      choices.push_back({.device = candidate.device});
      choice = choices.end() - 1;
    }
    if (candidate.address.family() == AF_INET) {
      if (choice->v4 == nullptr) choice->v4 = &candidate;
      continue;
    }
    const bool is_named = filter.names_ipv6(candidate);
    const bool is_better =
        choice->v6 == nullptr || is_named > choice->is_v6_named ||
        (is_named == choice->is_v6_named && ipv6_rank(candidate) < ipv6_rank(*choice->v6));
    if (is_better) {
      choice->v6 = &candidate;
      choice->is_v6_named = is_named;
    }
  }
  std::stable_partition(choices.begin(), choices.end(), [](const Choice& choice) {
    return !(choice.v4 != nullptr ? choice.v4 : choice.v6)->address.is_loopback();
  });
  std::vector<Rail> rails;
  for (const Choice& choice : choices) {
    if (choice.v4 != nullptr) rails.push_back(make_rail(*choice.v4, choice.device));
    if (choice.v6 != nullptr && (choice.v4 == nullptr || choice.is_v6_named)) {
      const std::string suffix(choice.v4 == nullptr ? "" : kIpv6Suffix);
      rails.push_back(make_rail(*choice.v6, choice.device + suffix));
    }
  }
  return rails;
}

}  // namespace polyrail::tcp

namespace polyrail {

Result<std::vector<Rail>> discover_tcp(const Options& options) {
  const Result<tcp::InterfaceFilter> filter = tcp::InterfaceFilter::parse(options.interfaces);
  if (!filter.is_ok()) return filter.status();
  const Result<std::vector<tcp::InterfaceAddress>> interfaces = tcp::list_interfaces();
  if (!interfaces.is_ok()) return interfaces.status();
  std::vector<Rail> rails = tcp::select_rails(interfaces.value(), filter.value());
  if (rails.empty() && !filter.value().takes_all()) {
    std::string text = "option interfaces: '" + options.interfaces +
                       "' leaves no usable interface of this host; it has";
    for (const tcp::InterfaceAddress& found : interfaces.value()) {
      text += " " + found.device + " (" + found.address.ip_text() +
              (found.is_usable ? ")" : ", not usable)");
    }
    return Status(StatusCode::kInvalidArgument, std::move(text));
  }
  return rails;
}

}  // namespace polyrail
