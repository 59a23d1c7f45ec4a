// Egress: where a rail's slices wait for their turn to leave, over all endpoints, as in the queue
// of a network card.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

#include "transports/fault/fault.hpp"
#include "transports/fault/token_bucket.hpp"

namespace polyrail::fault {

using Time = std::chrono::steady_clock::time_point;
inline constexpr Time kNever = Time::max();

class FaultEndpoint;

class Egress {
 public:
  Egress(const FaultClause& clause, Time now)
      : clause_(clause), bucket_(clause.bytes_per_s, clause.burst_bytes, now) {}

  const FaultClause& clause() const { return clause_; }
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  void set_rate(double bytes_per_s, Time now);
  // While it is shut nothing leaves; what waits then has not earned the time when it opens.
  void set_shut(bool is_shut, Time now);
  bool is_shut() const { return is_shut_; }

  // Leaves without waiting, if nothing stands in the way.
  bool pass(std::uint64_t bytes, Time now);
  // Undoes pass() for a slice that the transport below would not take.
  void pass_back(std::uint64_t bytes);
  // Waits behind everything else; advance() calls endpoint.depart() when its turn has come.
  void wait(FaultEndpoint& endpoint, std::uint64_t bytes, Time now);
  bool advance(Time now);
  // When advance() will next have something to do, or kNever.
  Time due() const;
  // What an endpoint may have waiting: enough to bridge the pauses between two progress().
  std::uint64_t queue_bytes() const;

 private:
  struct Turn {
    FaultEndpoint* endpoint;
    std::uint64_t bytes;
  };

  const FaultClause clause_;
  TokenBucket bucket_;
  std::deque<Turn> turns_;
  bool is_shut_ = false;
  std::uint64_t sent_bytes_ = 0;
};

}  // namespace polyrail::fault
