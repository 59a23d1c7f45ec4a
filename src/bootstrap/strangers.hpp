// Strangers: callers that have not yet proven that they know the key of the job.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/log.hpp"
#include "src/bootstrap/setup.hpp"

struct pollfd;

namespace polyrail::bootstrap {

// A caller whose proof was right.
struct Proven {
  FileDescriptor descriptor;
  Claim claim;
};

// Holds at most `most` of them, each for a limited time; a new caller takes the place of the one
// that has got least far. Whoever is turned away is closed without a word and logged, not more
// often than makes sense.
class Strangers {
 public:
  Strangers(const JoinSetup& setup, std::size_t most) : setup_(setup), most_(most) {}

  void add(FileDescriptor descriptor, const Address& from);
  // Frees one descriptor, if there is one to free.
  void evict_one();
  // What to poll for, in an order that lasts until the next call of another method.
  void append_polled(std::vector<pollfd>& polled) const;
  // Goes on with those that poll said are ready. `remaining_ms` is for the root's claim.
  std::vector<Proven> step(const pollfd* polled, std::uint32_t remaining_ms);
  // Turns away those whose time is over. Returns when the next one's will be.
  Clock::time_point drop_late(Clock::time_point now);

  std::size_t count() const { return callers_.size(); }
  // "3 strangers were turned away, the last 10.0.0.9:5000: ..." or "".
  std::string summary() const;

 private:
  struct Caller {
    FileDescriptor descriptor;
    Address from;
    Clock::time_point until;
    std::string hello;
    std::string challenge;  // sent, once hello is complete
    std::string reply;
  };
  enum class Next : std::uint8_t { kWait, kGone, kProven };

  Next read_more(Caller& caller, std::uint32_t remaining_ms, std::optional<Claim>& claim);
  Next turn_away(const Caller& caller, const std::string& why);

  const JoinSetup& setup_;
  const std::size_t most_;
  std::vector<Caller> callers_;  // oldest first
  std::size_t turned_away_count_ = 0;
  std::string last_;                                  // who was turned away last, and why
  std::map<std::string, std::size_t> logged_counts_;  // by reason
  Clock::time_point next_log_{};
  std::size_t unlogged_count_ = 0;
};

}  // namespace polyrail::bootstrap
