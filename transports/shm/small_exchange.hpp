// Boards: where each rank writes a few bytes that all others read, for exchanges that cost one trip
// of a cache line.
//
// A rank has two boards and writes them in turn. Two suffice: a rank posts exchange n + 2, and so
// overwrites what it posted in n, only after everybody has posted n + 1 (can_post); and everybody
// posts n + 1 only after having finished reading n. The reader's loads come before its own post of
// n + 1 (release), which the writer has seen (acquire) before it writes again. A rank that needs
// nothing of the others may so be one exchange ahead of them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transports/shm/doorbell.hpp"
#include "transports/shm/layout.hpp"
#include "transports/transport.hpp"

namespace polyrail::shm {

// Written by its owner only. Short messages lie in one cache line with the number that says they
// are there. Aligned to pairs of lines, which some processors fetch together.
struct alignas(2 * kLineBytes) Board {
  static constexpr std::size_t kMostBytes = 32 * kLineBytes - 8;
  std::atomic<std::uint64_t> exchange;  // number of the one whose bytes these are
  std::array<std::byte, kMostBytes> bytes;
};
using BoardPair = std::array<Board, 2>;
static_assert(sizeof(BoardPair) == Outbox::kPageBytes);

class ShmSmallExchange final : public SmallExchange {
 public:
  ShmSmallExchange(BoardPair& own, int rank_count)
      : own_(own), theirs_(static_cast<std::size_t>(rank_count)) {}

  // Whom to exchange with. The boards and the ringer must stay until the peer leaves.
  void join(int peer, const BoardPair& boards, const Ringer& ringer);
  void leave(int peer);

  std::size_t most_bytes() const override { return Board::kMostBytes; }
  bool can_post() const override;
  void post(std::span<const std::byte> bytes, std::span<const bool> awaited) override;
  const std::byte* poll(int peer) const override { return posted(peer, exchange_); }
  const std::byte* peek(int peer) const override { return posted(peer, exchange_ + 1); }
  void finish() override;

  // Whether a sleeper would miss something: all that is awaited in the exchange under way has been
  // posted, or the next exchange may be started.
  bool has_news() const { return is_finished_ ? wants_to_post_ && can_post() : is_complete(); }

 private:
  struct Peer {
    const BoardPair* boards = nullptr;  // nullptr: takes no part
    const Ringer* ringer = nullptr;
    bool is_awaited = false;
  };
  const std::byte* posted(int peer, std::uint64_t exchange) const;
  bool is_complete() const;

  BoardPair& own_;
  std::vector<Peer> theirs_;  // by rank
  std::uint64_t exchange_ = 0;
  bool is_finished_ = true;
  mutable bool wants_to_post_ = false;  // it was asked and could not
};

}  // namespace polyrail::shm
