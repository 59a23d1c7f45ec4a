// Direction: the memory through which one rank sends to another, as both see it. Apart from the
// code that works on it because its memory order is the whole point.
//
// One process sends, the other receives. A ring of entries, one cache line each, carries headers
// and tiny payloads; a ring of bytes beside it, the staging area, carries payloads that are copied.
//   The sender writes an entry and publishes it by `stamp` (its sequence number + 1).
//   The receiver takes entries in order and publishes how many by `taken`: that acknowledges them,
//   and gives their lines back. Its own entries say so, too, so that a reply brings the
//   acknowledgement along in the line that is looked at anyway.
//   Bytes of the staging area belong to the staged entries in order, each rounded up to whole cache
//   lines. The sender publishes how many it has written by `staged_bytes`, the receiver how many it
//   no longer needs by `freed_bytes`.
// Sleeping: whatever is published for a process that may be asleep (stamp, staged_bytes, taken,
// freed_bytes, is_closed) is stored with sequential consistency, and so is `asleep` by the sleeper
// before it looks at those once more. So either the sleeper sees the news or the publisher sees
// that somebody must be woken.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/key.hpp"
#include "transports/transport.hpp"

namespace polyrail::shm {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::uint32_t kEntryCount = 512;  // a power of two: sequence numbers wrap around
inline constexpr std::size_t kInlineBytes = 24;    // what the line of an entry has left

// Where the payload of an entry is.
enum class EntryKind : std::uint8_t {
  kInline,       // in the entry
  kStaged,       // in the staging area, all of it already
  kStreamed,     // in the staging area, part after part
  kShared,       // in memory of mem_alloc, which the receiver maps
  kControlLine,  // a control message in the entry
  kControl,      // a control message in the staging area, all of it already
};

struct SharedPlace {
  std::uint64_t block_id;
  std::uint64_t offset_bytes;
  std::int32_t descriptor;  // of the block in the sender's process
};

struct alignas(kLineBytes) Entry {
  std::atomic<std::uint32_t> stamp;
  EntryKind kind;
  bool was_stalled;     // written by the receiver before `taken`: it had answered kLater
  std::uint16_t taken;  // entries of the opposite direction that the sender has taken; low bits
  SliceHeader header;
  union {
    std::array<std::byte, kInlineBytes> bytes;  // kInline, kControlLine
    SharedPlace shared;                         // kShared
  };
};
static_assert(sizeof(Entry) == kLineBytes);

// What a process found about its peer.
enum class Verdict : std::uint32_t {
  kNone,  // not yet looked
  kRefused,
  kAccepted,
};

enum AsleepFor : std::uint32_t {  // bits of `asleep`
  kArrivals = 1,                  // entries and staged bytes
  kAcknowledgements = 2,
  kRoom = 4,  // half of the staging area
};

// Where the two halves of an endpoint meet; in private memory. Counts of entries, which wrap
// around.
struct Crossing {
  std::uint32_t taken = 0;         // of the peer's entries, by this end
  std::uint32_t acknowledged = 0;  // of the own entries, as far as is known
};

// In front of the entries; one direction has all of its memory in one mapping. All zero at first.
struct Direction {
  // Written by the sender.
  alignas(kLineBytes) std::atomic<std::uint32_t> is_ready;  // the proof is there
  Proof proof;  // that the sender knows the key; before it is checked nothing else is believed
  alignas(kLineBytes) std::atomic<Verdict> verdict;  // about the receiver
  std::atomic<std::uint32_t> is_closed;
  std::atomic<std::uint32_t> asleep;  // AsleepFor; the sender, in its role as receiver, too
  alignas(kLineBytes) std::atomic<std::uint64_t> staged_bytes;
  // Written by the receiver.
  alignas(kLineBytes) std::atomic<std::uint64_t> freed_bytes;
  std::atomic<std::uint32_t> taken;

  alignas(kLineBytes) std::array<Entry, kEntryCount> entries;

  Entry& entry(std::uint32_t sequence) { return entries[sequence % kEntryCount]; }
  // The staging area follows. A power of two, so that positions may wrap around.
  std::byte* staging() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The memory file of a rank: its directions to all ranks, by rank, then its boards
// (small_exchange.hpp).
struct Outbox {
  static constexpr std::size_t kPageBytes = 4096;
  std::size_t rank_count;
  std::size_t staging_bytes;

  struct Range {
    std::size_t offset_bytes;
    std::size_t bytes;
  };
  constexpr Range direction(int peer) const {
    const std::size_t bytes =
        (sizeof(Direction) + staging_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    return {static_cast<std::size_t>(peer) * bytes, bytes};
  }
  constexpr Range boards() const {
    return {direction(static_cast<int>(rank_count)).offset_bytes, kPageBytes};
  }
  constexpr std::size_t bytes() const { return boards().offset_bytes + boards().bytes; }
};

}  // namespace polyrail::shm
