#include "transports/builtin.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>

#include "transports/loopback/loopback.hpp"
#include "transports/shm/shm.hpp"
#include "transports/tcp/tcp.hpp"

namespace polyrail {
namespace {

constexpr TransportKind kKinds[] = {
    {"loopback", discover_loopback, open_loopback},
    {"shm", discover_shm, open_shm},
    {"tcp", discover_tcp, open_tcp},
};

}  // namespace

std::span<const TransportKind> builtin_transports() {
  return kKinds;
}

Result<std::vector<TransportKind>> transports_named(std::string_view list) {
  std::vector<TransportKind> kinds;
  std::stringstream names{std::string(list)};
  for (std::string name; std::getline(names, name, ',');) {
    if (name.empty()) continue;
    const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                    [&](const TransportKind& row) { return row.name == name; });
    if (kind == std::end(kKinds)) {
      std::string known;
      for (const TransportKind& row : kKinds) known += " " + std::string(row.name);
      return Status(StatusCode::kInvalidArgument, "option transports: there is no transport '" +
                                                      name + "' in this build, which has" + known);
    }
    kinds.push_back(*kind);
  }
  return kinds;
}

}  // namespace polyrail
