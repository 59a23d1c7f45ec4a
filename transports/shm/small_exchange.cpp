#include "transports/shm/small_exchange.hpp"

#include <cstring>

#include "src/base/assert.hpp"

namespace polyrail::shm {

void ShmSmallExchange::join(int peer, const BoardPair& boards, const Ringer& ringer) {
  theirs_[static_cast<std::size_t>(peer)] = {&boards, &ringer, false};
}

void ShmSmallExchange::leave(int peer) {
  theirs_[static_cast<std::size_t>(peer)] = {};
}

bool ShmSmallExchange::can_post() const {
  for (const Peer& peer : theirs_) {
    if (peer.boards != nullptr && (*peer.boards)[exchange_ % 2].exchange.load() < exchange_) {
      wants_to_post_ = true;
      return false;
    }
  }
  wants_to_post_ = false;
  return true;
}

void ShmSmallExchange::post(std::span<const std::byte> bytes, std::span<const bool> awaited) {
  PR_ASSERT(is_finished_ && bytes.size() <= Board::kMostBytes);
  PR_ASSERT(awaited.size() == theirs_.size());
  is_finished_ = false;
  wants_to_post_ = false;
  for (std::size_t peer = 0; peer < theirs_.size(); ++peer) {
    theirs_[peer].is_awaited = awaited[peer];
  }
  Board& board = own_[++exchange_ % 2];
  if (!bytes.empty()) std::memcpy(board.bytes.data(), bytes.data(), bytes.size());
  board.exchange.store(exchange_);  // published for sleepers, too: see layout.hpp
  for (const Peer& peer : theirs_) {
    if (peer.ringer != nullptr) peer.ringer->wake_for(kArrivals);
  }
}

const std::byte* ShmSmallExchange::posted(int peer, std::uint64_t exchange) const {
  const BoardPair* const boards = theirs_[static_cast<std::size_t>(peer)].boards;
  if (boards == nullptr) return nullptr;
  const Board& board = (*boards)[exchange % 2];
  return board.exchange.load() == exchange ? board.bytes.data() : nullptr;
}

void ShmSmallExchange::finish() {
  PR_ASSERT(!is_finished_);
  is_finished_ = true;
}

bool ShmSmallExchange::is_complete() const {
  for (const Peer& peer : theirs_) {
    if (!peer.is_awaited || peer.boards == nullptr) continue;
    if ((*peer.boards)[exchange_ % 2].exchange.load() != exchange_) return false;
  }
  return true;
}

}  // namespace polyrail::shm
