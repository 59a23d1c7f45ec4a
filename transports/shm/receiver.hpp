// Receiver: the receiving half of an endpoint; takes from the direction that the peer owns.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "transports/shm/doorbell.hpp"
#include "transports/shm/layout.hpp"
#include "transports/shm/peer_blocks.hpp"
#include "transports/transport.hpp"

namespace polyrail::shm {

class Receiver {
 public:
  Receiver(Direction& direction, std::uint32_t staging_bytes, Crossing& crossing,
           PeerBlocks blocks);

  // Before the first progress(): how the sender is woken.
  void start(const Ringer& ringer) { ringer_ = &ringer; }

  struct Outcome {
    bool has_moved = false;
    Status failure;  // what the peer posted cannot be right or cannot be read
  };
  // Takes what is there, within a bound.
  Outcome progress(Endpoint& self, Sink& sink);

  // Whether there is something to take. A slice that was answered kLater is no news: the engine
  // asks again when it has moved on.
  bool has_news() const;

  // The slice at hand is the only one with a target.
  void discard_incoming(std::uint32_t operation) {
    const bool is_meant = has_landing_ && head().header.operation == operation;
    if (is_meant) landing_.how = Landing::How::kDiscard;
  }

 private:
  struct Part {
    const std::byte* bytes = nullptr;
    std::uint32_t size = 0;  // 0: not there yet
  };

  bool has_entry() const;
  Entry& head() const { return direction_.entry(crossing_.taken); }
  void note_acknowledged(const Entry& entry);
  void take_control(Endpoint& self, Sink& sink, Entry& entry);
  // Moves parts of the slice at the head until it ends, nothing is there or the budget is used up.
  Status move(Endpoint& self, Sink& sink, const Entry& entry, std::uint32_t& budget_bytes);
  Result<Part> next_part(const Entry& entry, std::uint32_t most_bytes);
  void free_staged(EntryKind kind, std::uint32_t bytes, bool is_last);
  void finish(Entry& entry);

  Direction& direction_;
  const std::uint32_t staging_bytes_;
  Crossing& crossing_;
  PeerBlocks blocks_;
  const Ringer* ringer_ = nullptr;

  std::uint64_t freed_bytes_ = 0;  // position in the staging area
  // The slice at the head.
  bool has_landing_ = false;
  bool was_stalled_ = false;
  Landing landing_;
  std::uint32_t moved_bytes_ = 0;
};

}  // namespace polyrail::shm
