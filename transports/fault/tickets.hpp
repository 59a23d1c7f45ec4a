// Tickets: the slices that the transport below has not acknowledged yet. A ticket is the cookie
// that it is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/assert.hpp"
#include "transports/transport.hpp"

namespace polyrail::fault {

class Tickets {
 public:
  // For a slice that is sent `copy_count` times.
  std::uint64_t open(std::uint64_t cookie, int copy_count) {
    if (free_.empty()) {
      free_.push_back(tickets_.size());
      tickets_.emplace_back();
    }
    const auto number = free_.back();
    free_.pop_back();
    tickets_[number] = {copy_count, false, {}, {.cookie = cookie}};
    return number;
  }

  // The bytes of a slice whose source may change; kept until it is over.
  std::vector<std::byte>& bytes(std::uint64_t number) { return tickets_[number].bytes; }

  // One copy has been acknowledged; the slice is with the last one. How the first fared is what
  // counts.
  std::optional<Acknowledgement> acknowledge(const Acknowledgement& of_copy) {
    const std::uint64_t number = of_copy.cookie;
    PR_ASSERT(number < tickets_.size() && tickets_[number].copies_left > 0);
    auto& ticket = tickets_[number];
    if (!std::exchange(ticket.has_answer, true)) {
      ticket.done.was_stalled = of_copy.was_stalled;
      ticket.done.landed_us = of_copy.landed_us;
      ticket.done.ahead_bytes = of_copy.ahead_bytes;
    }
    if (--ticket.copies_left > 0) return std::nullopt;
    const Acknowledgement done = ticket.done;
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
    int copies_left = 0;
    bool has_answer = false;
    std::vector<std::byte> bytes;
    Acknowledgement done;
  };
  std::vector<Ticket> tickets_;
  std::vector<std::uint64_t> free_;
};

}  // namespace polyrail::fault
