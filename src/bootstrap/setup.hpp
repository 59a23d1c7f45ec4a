// JoinSetup: what both ends of the TCP bootstrap are given, and the two ways in.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <polyrail/bootstrap.hpp>

#include "src/base/key.hpp"
#include "src/base/log.hpp"
#include "src/bootstrap/handshake.hpp"
#include "src/bootstrap/socket.hpp"

namespace polyrail::bootstrap {

struct JoinSetup {
  Key key{};
  Claim self;
  std::int64_t timeout_ms = 0;  // option start_timeout_ms, for joining and for each all_gather
  Logger logger;
};

// Rank 0: listens on the sockets until all ranks are there. All ranks get the same failure.
Result<std::unique_ptr<Bootstrap>> join_as_root(std::vector<BoundSocket> sockets,
                                                const JoinSetup& setup);
// The other ranks: try all addresses at once until one leads to rank 0.
Result<std::unique_ptr<Bootstrap>> join_as_member(const std::vector<Address>& addresses,
                                                  const JoinSetup& setup);

// Deadline of one phase. The root gives its verdict a little earlier than the first member would
// give up, and a member waits a little longer for a root that it knows is there: so all ranks get
// the verdict, which knows more than any of them.
class PhaseDeadline {
 public:
  explicit PhaseDeadline(std::int64_t timeout_ms);
  // A member's deadline, which may be nearer than the root's own.
  void include(std::uint32_t remaining_ms);

  Clock::time_point own() const { return own_; }
  Clock::time_point verdict() const { return nearest_ - margin_; }
  Clock::time_point patient() const { return own_ + patience_; }
  // Of the own deadline, at least 0.
  std::uint32_t remaining_ms() const;

 private:
  Clock::time_point own_;
  Clock::time_point nearest_;
  Clock::duration margin_;
  Clock::duration patience_;
};

}  // namespace polyrail::bootstrap
