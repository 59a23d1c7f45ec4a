// Sender: the sending half of an endpoint; posts into the direction that this process owns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/base/shared_memory.hpp"
#include "transports/shm/distance.hpp"
#include "transports/shm/doorbell.hpp"
#include "transports/shm/layout.hpp"
#include "transports/transport.hpp"

namespace polyrail::shm {

// Payloads up to this size are copied as they are posted. Beyond it the caller's memory is read
// later: copying in pieces while the receiver takes them costs less than copying ahead.
inline constexpr std::uint32_t kBufferedBytes = 8 * 1024;

class Sender {
 public:
  Sender(Direction& direction, std::uint32_t staging_bytes, Crossing& crossing);

  // Before the first put: how the receiver is woken, and what tells memory of mem_alloc from other
  // memory.
  void start(const Ringer& ringer, SharedMemoryView& blocks);

  Posted put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie);
  Posted send_control(std::span<const std::byte> message);

  // How eagerly to look for acknowledgements that nobody is likely to wait for.
  enum class Look : std::uint8_t {
    kNot,   // something has just arrived: let that be dealt with first
    kNear,  // at what replies have brought along
    kFar,   // and at what the receiver has published, which costs a trip to another cache
  };
  // Copies what there is room for, within a bound, and reports acknowledgements. True if anything
  // happened.
  bool progress(Endpoint& self, Sink& sink, Look look);
  // Whether progress() would do something.
  bool has_news() const;
  // What the owner must be woken for (AsleepFor). `is_expecting`: it will be woken by an arrival
  // anyway.
  std::uint32_t sleeps_for(bool is_expecting) const;
  // Forgets all that is under way; the caller has learned that it is lost.
  void stop();

 private:
  struct Outstanding {
    std::uint64_t cookie = 0;
    bool is_slice = false;
    bool is_buffered = true;
    const std::byte* source = nullptr;  // kStreamed only
    SharedBlockHandle block{};          // kShared only
  };

  bool has_entry() const { return posted_ - reported_ < kEntryCount; }
  // Nothing posted before still waits to be staged.
  bool is_staged_up() const { return staging_ == posted_; }
  std::uint64_t room_bytes(std::uint64_t wanted_bytes);
  Entry& next_entry(const SliceHeader& header, EntryKind kind);
  Posted publish(Entry& entry, Outstanding outstanding);
  Posted put_whole(const SliceHeader& header, const std::byte* source, EntryKind kind,
                   Outstanding outstanding);
  void copy_in(const std::byte* source, std::uint32_t bytes);
  bool stage();
  bool has_acknowledged() const { return crossing_.acknowledged != reported_; }
  void report_acknowledged(Endpoint& self, Sink& sink);

  Direction& direction_;
  const std::uint32_t staging_bytes_;
  Crossing& crossing_;
  const Ringer* ringer_ = nullptr;
  SharedMemoryView* blocks_ = nullptr;

  // Sequence numbers of entries; all wrap around.
  std::uint32_t posted_ = 0;          // published
  std::uint32_t staging_ = 0;         // all before need no staging any more
  std::uint32_t reported_ = 0;        // all before are acknowledged and reported
  std::uint32_t referred_count_ = 0;  // outstanding slices that are not buffered
  bool was_busy_ = false;             // refused something since the last progress()
  std::vector<Outstanding> outstanding_;

  std::uint32_t staged_of_slice_bytes_ = 0;  // of the entry `staging_`
  std::uint64_t staged_bytes_ = 0;           // position in the staging area
  std::uint64_t freed_bytes_ = 0;            // last seen
  DistanceMeter distance_;
};

}  // namespace polyrail::shm
