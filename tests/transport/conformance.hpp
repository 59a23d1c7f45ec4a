// The conformance suite: what every transport must do, as transport.hpp says it. The tests lie in
// conformance_*_test.cpp; the transports they run over are the rows of conformance_cases.cpp.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/support/rank_harness.hpp"

namespace polyrail::testing {

struct ConformanceCase {
  std::string name;
  OpenTransport open;
  // What a decorator may take away. A transport of its own gives all of it.
  struct Guarantees {
    bool arrives_once = true;  // no slice arrives twice
    bool in_order = true;  // slices arrive as they were posted; controls keep their place anyway
  };
  Guarantees guarantees{};

  friend std::ostream& operator<<(std::ostream& out, const ConformanceCase& row) {
    return out << row.name;
  }
};

// One row per transport: to add one is to add a line.
std::vector<ConformanceCase> conformance_cases();

class TransportConformance : public ::testing::TestWithParam<ConformanceCase> {
 protected:
  const OpenTransport& open() const { return GetParam().open; }
  const ConformanceCase::Guarantees& guarantees() const { return GetParam().guarantees; }
};

// How many entries /proc/self/<folder> has: "fd" or "task".
std::size_t count_own(const std::string& folder);

}  // namespace polyrail::testing
