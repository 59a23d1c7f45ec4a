#include "transports/builtin.hpp"

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

}  // namespace polyrail
