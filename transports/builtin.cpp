#include "transports/builtin.hpp"

#include "transports/loopback/loopback.hpp"

namespace polyrail {
namespace {

constexpr TransportKind kKinds[] = {
    {"loopback", discover_loopback, open_loopback},
};

}  // namespace

std::span<const TransportKind> builtin_transports() {
  return kKinds;
}

}  // namespace polyrail
