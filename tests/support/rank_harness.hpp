// RankHarness: several ranks' transports in one process, joined with each other, for tests that
// drive them from one thread or from one thread per rank.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/recording_sink.hpp"
#include "transports/builtin.hpp"
#include "transports/transport.hpp"

namespace polyrail::testing {

// Opens one rank's transport.
using OpenTransport =
    std::function<Result<std::unique_ptr<Transport>>(const TransportContext& context)>;

// Opens the rail `rail_name` of a built-in kind ("" is the first that the kind discovers).
OpenTransport open_builtin(std::string kind, Options options = {}, std::string rail_name = "");

// One rank: its transport, what it heard, its endpoints.
struct HarnessRank {
  std::unique_ptr<Transport> transport;
  RecordingSink sink;
  std::vector<Endpoint*> endpoints;  // by peer; null for itself

  bool progress();
  // Progress, asleep on the descriptor while there is none, until `is_done`. For a thread per rank.
  void run_asleep(const std::function<bool()>& is_done);
};

class RankHarness {
 public:
  // Opens `rank_count` transports. Failures are test failures.
  RankHarness(const OpenTransport& open, int rank_count, TransportContext context = {});

  HarnessRank& operator[](int rank) { return *ranks_[rank]; }
  int rank_count() const { return static_cast<int>(ranks_.size()); }

  // Starts to connect every rank with every other.
  void connect();
  // ... and makes progress until all are up.
  void connect_until_up();
  // One round of progress for each rank that still has a transport; true if anything happened.
  bool progress();
  // Rounds of progress until the condition holds. A condition that never holds hangs the test; its
  // time-out belongs to ctest.
  void progress_until(const std::function<bool()>& is_done);
  // Fails the test for each breach that a sink noted.
  void expect_no_breaches() const;

 private:
  std::vector<std::unique_ptr<HarnessRank>> ranks_;
};

}  // namespace polyrail::testing
