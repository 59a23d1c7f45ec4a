// Tickets: the slices that the transport below has not acknowledged yet. A ticket is the cookie
// that it is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/base/assert.hpp"

namespace polyrail::fault {

class Tickets {
 public:
  struct Done {
    bool is_done = false;
    std::uint64_t cookie = 0;
    bool was_stalled = false;
  };

  // For a slice that is sent `copy_count` times.
  std::uint64_t open(std::uint64_t cookie, int copy_count) {
    if (free_.empty()) {
      free_.push_back(tickets_.size());
      tickets_.emplace_back();
    }
    const auto number = free_.back();
    free_.pop_back();
    tickets_[number] = {cookie, copy_count, false, {}};
    return number;
  }

  // The bytes of a slice whose source may change; kept until it is over.
  std::vector<std::byte>& bytes(std::uint64_t number) { return tickets_[number].bytes; }

  // One copy has been acknowledged; done with the last one. How the first fared is what counts.
  Done acknowledge(std::uint64_t number, bool was_stalled) {
    PR_ASSERT(number < tickets_.size() && tickets_[number].copies_left > 0);
    auto& ticket = tickets_[number];
    if (!std::exchange(ticket.has_answer, true)) ticket.was_stalled = was_stalled;
    if (--ticket.copies_left > 0) return {};
    const Done done{true, ticket.cookie, ticket.was_stalled};
    close(number);
    return done;
  }

  // For a slice that vanishes.
  void close(std::uint64_t number) {
    tickets_[number] = {};
    free_.push_back(number);
  }

 private:
  struct Ticket {
    std::uint64_t cookie = 0;
    int copies_left = 0;
    bool has_answer = false;
    std::vector<std::byte> bytes;
    bool was_stalled = false;
  };
  std::vector<Ticket> tickets_;
  std::vector<std::uint64_t> free_;
};

}  // namespace polyrail::fault
