// How messages and receives find each other.
#include <cstring>
#include <utility>

#include "src/exec/message_numbers.hpp"
#include "src/exec/messages.hpp"

namespace polyrail {
void Messages::match_all(Peer& peer) {
  std::vector<Incoming*> ready;
  for (Incoming* incoming : peer.unmatched) {
    if (incoming->number < peer.seen.below) ready.push_back(incoming);
  }
  for (Incoming* incoming : ready) {
    if (!match_message(peer, *incoming)) return;
  }
}

// False after a failure.
bool Messages::match_message(Peer& peer, Incoming& incoming) {
  for (Transfer* receive : peer.receives) {
    if (receive->tag != incoming.tag || !is_same_row(receive->purpose, incoming.purpose)) continue;
    if (!calls_agree(incoming, *receive)) return false;
    join(incoming, *receive);
    return true;
  }
  return true;
}

void Messages::match_receive(Peer& peer, Transfer& receive) {
  for (Incoming* incoming : peer.unmatched) {
    if (incoming->number >= peer.seen.below) return;
    if (receive.tag != incoming->tag || !is_same_row(receive.purpose, incoming->purpose)) continue;
    if (calls_agree(*incoming, receive)) join(*incoming, receive);
    return;
  }
}

bool Messages::calls_agree(const Incoming& incoming, const Transfer& receive) {
  if (incoming.type == receive.type && incoming.count == receive.count &&
      incoming.purpose == receive.purpose) {
    return true;
  }
  host_.fail(
      Status(StatusCode::kInvalidUsage, "the ranks do not agree on a message: rank " +
                                            std::to_string(rank_) + " called " + receive.text() +
                                            "; rank " + std::to_string(incoming.peer) + " called " +
                                            message_text(incoming.purpose, true, incoming.count,
                                                         incoming.type, rank_, incoming.tag)));
  return false;
}

void Messages::join(Incoming& incoming, Transfer& receive) {
  Peer& peer = peers_[incoming.peer];
  std::erase(peer.unmatched, &incoming);
  std::erase(peer.receives, &receive);
  incoming.match = &receive;
  if (incoming.is_complete) {
    deliver(incoming);
    return;
  }
  receive.landed_bytes = incoming.landed.covered_bytes();
  if (incoming.memory == nullptr) incoming.base = receive.target;
  if (incoming.kind == Kind::kRequest) {
    post_signal(incoming.peer, pack(Kind::kGrant, 0), incoming.number);
  }
}

void Messages::deliver(Incoming& incoming) {
  Transfer& receive = *incoming.match;
  Transfer* sender = incoming.sender;
  const std::byte* here = sender != nullptr ? sender->source : incoming.memory.get();
  if (here != nullptr && incoming.bytes != 0) {
    std::memcpy(receive.target, here, incoming.bytes);
  }
  if (incoming.kind == Kind::kEager) {
    give_credit_back(incoming.peer, incoming.bytes + kOverheadBytes);
  }
  receive.landed_bytes = incoming.bytes;
  erase(incoming);
  receive.is_landed = true;
  update(receive);
  if (sender == nullptr) return;
  sender->sent_bytes = sender->bytes();
  sender->is_sent = true;
  update(*sender);
}

void Messages::give_credit_back(int rank, std::uint64_t bytes) {
  Peer& peer = peers_[rank];
  if (rank == rank_) {
    peer.credit_bytes += bytes;
    return;
  }
  peer.released_bytes += bytes;
  if (peer.released_bytes < credit_bytes_ / 4) return;
  post_signal(rank, pack(Kind::kCredit, 0), std::exchange(peer.released_bytes, 0));
}

// Forgets it; a slice that is still landing for the second time no longer does.
void Messages::erase(Incoming& incoming) {
  if (incoming.open_count != 0) {
    host_.discard_incoming(incoming.peer, operation_of(incoming.number));
  }
  if (incoming.buffer != nullptr) incoming.window->give_back(std::move(incoming.buffer));
  Peer& peer = peers_[incoming.peer];
  peer.incoming.erase(incoming.number);
}

}  // namespace polyrail
