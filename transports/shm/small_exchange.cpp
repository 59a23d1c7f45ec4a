#include "transports/shm/small_exchange.hpp"

#include <cstring>

#include "src/base/assert.hpp"

namespace polyrail::shm {

void ShmSmallExchange::join(int peer, const BoardPair& boards, const Ringer& ringer) {
  theirs_[static_cast<std::size_t>(peer)] = {&boards, &ringer};
}

void ShmSmallExchange::leave(int peer) {
  theirs_[static_cast<std::size_t>(peer)] = {};
}

void ShmSmallExchange::post(std::span<const std::byte> bytes) {
  PR_ASSERT(is_finished_ && bytes.size() <= Board::kMostBytes);
  is_finished_ = false;
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
  PR_ASSERT(!is_finished_ && is_complete());
  is_finished_ = true;
}

bool ShmSmallExchange::is_complete() const {
  for (const Peer& peer : theirs_) {
    if (peer.boards != nullptr && (*peer.boards)[exchange_ % 2].exchange.load() != exchange_) {
      return false;
    }
  }
  return true;
}

}  // namespace polyrail::shm
