// make_unique_id and join: the TCP bootstrap by unique id.
#include <algorithm>

#include "src/base/interfaces.hpp"
#include "src/bootstrap/reserved.hpp"
#include "src/bootstrap/setup.hpp"
#include "src/bootstrap/wording.hpp"

namespace polyrail {

using namespace bootstrap;  // the inner parts of this folder

namespace {

// Best first: an id has room for about thirty IPv4 or ten IPv6 addresses.
int preference(const InterfaceAddress& address) {
  return (address.ip.is_link_local() ? 2 : 0) + (address.ip.is_ipv6 ? 1 : 0);
}

// Link-local addresses stay out where their interface has a better one: the others cannot know
// which of their interfaces leads there.
std::vector<IpAddress> listening_addresses(std::vector<InterfaceAddress> usable) {
  std::stable_sort(usable.begin(), usable.end(),
                   [](const auto& a, const auto& b) { return preference(a) < preference(b); });
  std::vector<IpAddress> result;
  std::vector<std::string> served;
  for (const InterfaceAddress& address : usable) {
    const bool is_served =
        std::find(served.begin(), served.end(), address.interface) != served.end();
    if (address.ip.is_link_local() && is_served) continue;
    served.push_back(address.interface);
    result.push_back(address.ip);
  }
  return result;
}

// Rank 0's sockets: those kept by make_unique_id, or the same addresses bound again.
Result<std::vector<BoundSocket>> root_sockets(const UniqueId& id,
                                              const std::vector<Address>& addresses) {
  std::vector<BoundSocket> sockets = take_sockets(id);
  if (!sockets.empty()) return sockets;
  std::string failures;
  bool is_taken = false;
  for (const Address& address : addresses) {
    Result<BoundSocket> socket = bind_socket(address);
    if (socket.is_ok()) {
      sockets.push_back(std::move(socket).value());
      continue;
    }
    is_taken |= socket.status().code() == StatusCode::kInvalidUsage;
    failures += (failures.empty() ? "" : "; ") + socket.status().message();
  }
  if (!sockets.empty()) return sockets;
  return Status(StatusCode::kInvalidUsage,
                (is_taken ? "rank 0 seems to be there already: "
                          : "rank 0 belongs on the host where the unique id was made: ") +
                    failures);
}

}  // namespace

Result<UniqueId> make_unique_id(const Options& options) {
  const Result<std::vector<InterfaceAddress>> all = interface_addresses();
  if (!all.is_ok()) return all.status();
  const Result<std::vector<InterfaceAddress>> usable =
      select_addresses(all.value(), options.interfaces);
  if (!usable.is_ok()) return usable.status();
  const Result<Key> key = random_key();
  if (!key.is_ok()) return key.status();

  UniqueId id;
  id.key = key.value();
  std::vector<BoundSocket> sockets;
  std::string failures;
  for (const IpAddress& ip : listening_addresses(usable.value())) {
    Result<BoundSocket> socket = bind_socket({ip, 0});
    if (!socket.is_ok()) {
      failures += (failures.empty() ? "" : "; ") + socket.status().message();
      continue;
    }
    id.addresses.push_back(to_text(socket.value().address));
    if (!id.to_bytes().is_ok()) {  // full
      id.addresses.pop_back();
      break;
    }
    sockets.push_back(std::move(socket).value());
  }
  if (sockets.empty()) {
    return Status(StatusCode::kSystemError, "no address to listen at: " + failures);
  }
  keep_sockets(id, std::move(sockets));
  return id;
}

Result<std::unique_ptr<Bootstrap>> join(const UniqueId& id, int rank, int rank_count,
                                        const Options& options) {
  if (Status status = check_rank(rank, rank_count); !status.is_ok()) return status;
  std::vector<Address> addresses;
  for (const std::string& text : id.addresses) {
    const Result<Address> address = parse_address(text);
    if (!address.is_ok()) {
      return Status(StatusCode::kInvalidArgument, "unique id: " + address.status().message());
    }
    addresses.push_back(address.value());
  }
  if (addresses.empty()) {
    return Status(StatusCode::kInvalidArgument, "unique id: it has no address");
  }
  Result<Logger> logger = make_logger(options, "polyrail");
  if (!logger.is_ok()) return logger.status();
  const JoinSetup setup{id.key, own_claim(rank, rank_count), options.start_timeout_ms,
                        std::move(logger).value()};
  if (rank != 0) return join_as_member(addresses, setup);
  Result<std::vector<BoundSocket>> sockets = root_sockets(id, addresses);
  if (!sockets.is_ok()) return sockets.status();
  return join_as_root(std::move(sockets).value(), setup);
}

}  // namespace polyrail
