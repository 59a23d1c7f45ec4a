// The transports that the conformance suite runs over.
#include <filesystem>

#include "tests/transport/conformance.hpp"
#include "transports/fault/fault.hpp"

namespace polyrail::testing {
namespace {

OpenTransport open_tcp_on_lo(int sockets) {
  Options options;
  options.interfaces = "=lo";
  options.tcp_sockets = sockets;
  return open_builtin("tcp", options);
}

// The same transport, faulty at all ends.
OpenTransport with_faults(OpenTransport open, std::string settings) {
  return [=](const TransportContext& context) -> Result<std::unique_ptr<Transport>> {
    auto transport = open(context);
    if (!transport.is_ok()) return transport;
    Options options;
    options.fault = "*:" + settings;
    return decorate(std::move(transport).value(), options);
  };
}

}  // namespace

std::vector<ConformanceCase> conformance_cases() {
  return {
      {"loopback", open_builtin("loopback")},
      {"shm", open_builtin("shm")},
      {"tcp", open_tcp_on_lo(1)},
      // Slices are offered in order, but large ones may end in another.
      {"tcp_by_3_sockets", open_tcp_on_lo(3), {.in_order = false}},
      {"fault_none", with_faults(open_builtin("loopback"), "delay=0us")},
      {"fault_rate_and_delay",
       with_faults(open_builtin("loopback"), "rate=2GB/s,burst=64KiB,delay=100us")},
      {"fault_reorder", with_faults(open_builtin("loopback"), "reorder=5"), {.in_order = false}},
      {"fault_duplicate",
       with_faults(open_builtin("loopback"), "duplicate=0.3"),
       {.arrives_once = false}},
      {"fault_everything_over_shm",
       with_faults(open_builtin("shm"), "rate=2GB/s,delay=20us,reorder=3,duplicate=0.1"),
       {.arrives_once = false, .in_order = false}},
  };
}

std::size_t count_own(const std::string& folder) {
  const std::filesystem::directory_iterator entries("/proc/self/" + folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

INSTANTIATE_TEST_SUITE_P(, TransportConformance, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace polyrail::testing
