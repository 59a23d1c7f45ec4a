// The transports that the conformance suite runs over.
#include <filesystem>

#include "tests/transport/conformance.hpp"

namespace polyrail::testing {
std::vector<ConformanceCase> conformance_cases() {
  return {
      {"loopback", open_builtin("loopback")},
      {"shm", open_builtin("shm")},
  };
}

std::size_t count_own(const std::string& folder) {
  const std::filesystem::directory_iterator entries("/proc/self/" + folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

INSTANTIATE_TEST_SUITE_P(, TransportConformance, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace polyrail::testing
