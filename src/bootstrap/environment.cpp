#include "src/bootstrap/environment.hpp"

#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <thread>

#include "src/base/interfaces.hpp"
#include "src/bootstrap/bytes.hpp"
#include "src/bootstrap/setup.hpp"
#include "src/bootstrap/wording.hpp"

namespace polyrail {
namespace bootstrap {
namespace {

// Works with what every Debian has.
constexpr const char* kMakeKey =
    "export POLYRAIL_KEY=$(head -c 32 /dev/urandom | od -A n -v -t x1 | tr -d ' \\n')";
constexpr std::chrono::milliseconds kNamePause{100};

using Getter = std::function<const char*(const char*)>;

Status bad(const std::string& what) {
  return {StatusCode::kInvalidArgument, "environment: " + what};
}

Result<int> read_integer(const Getter& get, const char* name, int least, int most) {
  const char* text = get(name);
  if (text == nullptr || *text == '\0') {
    return bad(std::string(name) +
               " is not set; torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  }
  const std::string_view digits = text;
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < least ||
      value > most) {
    return bad(std::string(name) + "='" + printable(digits) + "' is not an integer from " +
               std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

Result<Key> read_key(const Getter& get) {
  const char* text = get("POLYRAIL_KEY");
  if (text == nullptr || *text == '\0') {
    return bad(std::string("POLYRAIL_KEY is not set. All ranks need the same secret key; make one "
                           "with\n  ") +
               kMakeKey + "\nand hand it to the ranks together with the other variables");
  }
  const std::optional<std::string> bytes = from_hex(text);
  Key key;
  if (!bytes.has_value() || bytes->size() != key.size()) {
    return bad("POLYRAIL_KEY (" + std::to_string(std::string_view(text).size()) +
               " characters) is not 64 hexadecimal digits; make one with\n  " + kMakeKey);
  }
  std::copy(bytes->begin(), bytes->end(), key.begin());
  return key;
}

// The addresses of a host name. A name that is not known yet may become so: in clusters a host's
// name often appears a moment after the host.
Result<std::vector<IpAddress>> resolve(const std::string& name, std::int64_t timeout_ms) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    addrinfo* list = nullptr;
    const int error = getaddrinfo(name.c_str(), nullptr, &hints, &list);
    if (error == 0) {
      const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
      std::vector<IpAddress> result;
      for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
        if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
        const IpAddress ip = from_socket_address(entry->ai_addr).ip;
        if (std::find(result.begin(), result.end(), ip) == result.end()) result.push_back(ip);
      }
      return result;
    }
    const bool may_change = error == EAI_AGAIN || error == EAI_NONAME;
    if (!may_change || Clock::now() + kNamePause >= deadline) {
      return bad("MASTER_ADDR='" + printable(name) + "' is no known host: " + gai_strerror(error));
    }
    std::this_thread::sleep_for(kNamePause);
  }
}

std::string list(const std::vector<IpAddress>& ips) {
  std::string text;
  for (const IpAddress& ip : ips) text += (text.empty() ? "" : ", ") + to_text(ip);
  return text.empty() ? "no address" : text;
}

bool are_all_loopback(const std::vector<IpAddress>& ips) {
  return std::all_of(ips.begin(), ips.end(), [](const IpAddress& ip) { return ip.is_loopback(); });
}

// Many hosts know their own name as a loopback address, where the other hosts would never come.
// Then rank 0 listens at its real addresses too.
Result<std::vector<IpAddress>> root_addresses(const Launch& launch,
                                              const std::vector<IpAddress>& named,
                                              const Options& options) {
  const bool means_loopback =
      launch.master_host == "localhost" || parse_ip(launch.master_host).is_ok();
  if (!are_all_loopback(named) || means_loopback) return named;
  const Result<std::vector<InterfaceAddress>> all = interface_addresses();
  if (!all.is_ok()) return all.status();
  const auto usable = select_addresses(all.value(), options.interfaces);
  if (!usable.is_ok()) return usable.status();
  std::vector<IpAddress> result = named;
  for (const InterfaceAddress& address : usable.value()) {
    const bool is_new = std::find(result.begin(), result.end(), address.ip) == result.end();
    if (is_new && !address.ip.is_link_local()) result.push_back(address.ip);
  }
  return result;
}

// At each address the first port that nobody listens at.
Result<std::vector<BoundSocket>> listen_at_master(const Launch& launch,
                                                  const std::vector<IpAddress>& ips) {
  std::vector<BoundSocket> sockets;
  std::string failures;
  bool is_here = false;
  for (const IpAddress& ip : ips) {
    for (int i = 0; i < kPortCount && launch.master_port + i <= 65535; ++i) {
      Result<BoundSocket> socket =
          bind_socket({ip, static_cast<std::uint16_t>(launch.master_port + i)});
      Status status = socket.is_ok() ? start_listening(socket.value()) : socket.status();
      if (status.is_ok()) {
        sockets.push_back(std::move(socket).value());
        break;
      }
      failures += (failures.empty() ? "" : "; ") + status.message();
      if (status.code() != StatusCode::kInvalidUsage) break;  // not just taken: not possible here
      is_here = true;
    }
  }
  if (!sockets.empty()) return sockets;
  if (!is_here) {
    return bad("rank 0 runs here, but MASTER_ADDR='" + printable(launch.master_host) + "' (" +
               list(ips) + ") is not this host: " + failures);
  }
  return Status(StatusCode::kSystemError,
                "environment: no free port for rank 0 from MASTER_PORT on: " + failures);
}

}  // namespace

Result<Launch> read_launch(const Getter& get) {
  Launch launch;
  const Result<int> rank_count = read_integer(get, "WORLD_SIZE", 1, kMaxRankCount);
  if (!rank_count.is_ok()) return rank_count.status();
  const Result<int> rank = read_integer(get, "RANK", 0, rank_count.value() - 1);
  if (!rank.is_ok()) return rank.status();
  if (get("LOCAL_RANK") != nullptr) {  // nothing depends on it, but a wrong one hints at a mix-up
    const Result<int> local = read_integer(get, "LOCAL_RANK", 0, rank_count.value() - 1);
    if (!local.is_ok()) return local.status();
  }
  launch.rank = rank.value();
  launch.rank_count = rank_count.value();
  if (const char* text = get("POLYRAIL_UNIQUE_ID"); text != nullptr && *text != '\0') {
    Result<UniqueId> id = UniqueId::from_text(text);
    if (!id.is_ok()) return bad("POLYRAIL_UNIQUE_ID: " + id.status().message());
    launch.unique_id = std::move(id).value();
    return launch;
  }
  const char* host = get("MASTER_ADDR");
  if (host == nullptr || *host == '\0') {
    return bad("MASTER_ADDR is not set; it names the host of rank 0");
  }
  launch.master_host = host;
  const Result<int> port = read_integer(get, "MASTER_PORT", 1, 65535);
  if (!port.is_ok()) return port.status();
  launch.master_port = static_cast<std::uint16_t>(port.value());
  const Result<Key> key = read_key(get);
  if (!key.is_ok()) return key.status();
  launch.key = key.value();
  return launch;
}

Result<std::unique_ptr<Bootstrap>> join_launched(const Launch& launch, const Options& options) {
  if (launch.unique_id.has_value()) {
    return join(*launch.unique_id, launch.rank, launch.rank_count, options);
  }
  Result<Logger> logger = make_logger(options, "polyrail");
  if (!logger.is_ok()) return logger.status();
  JoinSetup setup{launch.key, own_claim(launch.rank, launch.rank_count), options.start_timeout_ms,
                  std::move(logger).value()};
  // Jobs that were given the same key but another port do not know each other.
  setup.key = derive_key(launch.key, "MASTER_PORT " + std::to_string(launch.master_port));
  if (launch.rank_count == 1) return join_as_root({}, setup);

  const auto named = resolve(launch.master_host, options.start_timeout_ms);
  if (!named.is_ok()) return named.status();
  if (std::any_of(named.value().begin(), named.value().end(),
                  [](const IpAddress& ip) { return ip.is_any(); })) {
    return bad("MASTER_ADDR='" + printable(launch.master_host) +
               "' is no address of one host; name the host of rank 0");
  }
  if (launch.rank == 0) {
    const auto ips = root_addresses(launch, named.value(), options);
    if (!ips.is_ok()) return ips.status();
    Result<std::vector<BoundSocket>> sockets = listen_at_master(launch, ips.value());
    if (!sockets.is_ok()) return sockets.status();
    return join_as_root(std::move(sockets).value(), setup);
  }
  std::vector<Address> addresses;
  for (const IpAddress& ip : named.value()) {
    for (int i = 0; i < kPortCount && launch.master_port + i <= 65535; ++i) {
      addresses.push_back({ip, static_cast<std::uint16_t>(launch.master_port + i)});
    }
  }
  return join_as_member(addresses, setup);
}

}  // namespace bootstrap

Result<std::unique_ptr<Bootstrap>> join_from_environment(const Options& options) {
  const Result<bootstrap::Launch> launch =
      bootstrap::read_launch([](const char* name) { return std::getenv(name); });
  if (!launch.is_ok()) return launch.status();
  return bootstrap::join_launched(launch.value(), options);
}

}  // namespace polyrail
