// Wire: what two loopback transports share, two rings of slots and the flags beside them. Apart
// from the code that works on it because its memory order is the whole point.
//
// One ring carries one direction; one thread posts, one takes. A slot goes round like this:
//   the sender writes it and publishes it by `stamp` (the slot's sequence number + 1);
//   the receiver takes it and publishes that by `consumed`, which is the acknowledgement too;
//   the sender sees `consumed`, reports the acknowledgement, and may write the slot again.
// Stores that a sleeper may miss (stamp, consumed, is_joined, is_closed) are sequentially
// consistent, as are the flag of the sleeper and what it looks at after setting it: either the
// sleeper sees the news or the other side sees the flag.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "src/base/file_descriptor.hpp"
#include "src/base/sleep_set.hpp"
#include "transports/transport.hpp"

namespace polyrail::loopback {

// How a transport's thread is woken. Any thread may call wake().
struct Waker {
  explicit Waker(FileDescriptor descriptor) : event(std::move(descriptor)) {}

  // Call after publishing something.
  void wake() {
    if (!is_asleep.load() || !is_asleep.exchange(false)) return;
    raise_event(event.get());
  }

  const FileDescriptor event;
  std::atomic<bool> is_asleep{false};
};

enum class SlotKind : std::uint32_t {
  kPosted,       // the payload lies at `source`, in memory of the sender's user
  kInline,       // the payload lies in the slot
  kControlPart,  // header.bytes of a control message; more follow
  kControlEnd,   // the last part
};

struct alignas(64) Slot {
  static constexpr std::size_t kInlineBytes = 280;  // five cache lines with the rest

  std::atomic<std::uint32_t> stamp{0};
  SlotKind kind = SlotKind::kInline;
  SliceHeader header;
  union {
    const std::byte* source;
    std::array<std::byte, kInlineBytes> bytes;  // the first 24 lie in the line of the stamp
  };
};
static_assert(sizeof(Slot) == 5 * 64);

struct Direction {
  static constexpr std::uint32_t kSlots = 64;  // one bit each in was_stalled

  std::array<Slot, kSlots> slots;
  // Written by the receiver. Bit i: the slice last taken from slot i had been answered kLater.
  alignas(64) std::atomic<std::uint32_t> consumed{0};
  std::atomic<std::uint64_t> was_stalled{0};
  // The receiver is reading from the sender's memory; see read_begin().
  std::atomic<bool> is_reading{false};
};

class Wire {
 public:
  Wire(std::shared_ptr<Waker> waker0, std::shared_ptr<Waker> waker1)
      : wakers_{std::move(waker0), std::move(waker1)} {}

  // Ring that side `side` (0 or 1) sends through.
  Direction& from(int side) { return directions_[side]; }
  void wake(int side) { wakers_[side]->wake(); }

  // Side 1 has connected as well: the wire may be used.
  bool is_joined() const { return is_joined_.load(); }
  void join() { is_joined_.store(true); }

  bool is_closed(int side) const { return is_closed_[side].load(); }
  // Ends the use of one side's memory. When this returns the other side no longer reads there.
  void close(int side) {
    is_closed_[side].store(true);
    wake(1 - side);
    while (directions_[side].is_reading.load()) std::this_thread::yield();
  }

  // Brackets around reading what `side` posted by reference; false: it has closed, hands off.
  bool read_begin(int side) {
    directions_[side].is_reading.store(true);
    if (!is_closed(side)) return true;
    read_end(side);
    return false;
  }
  void read_end(int side) { directions_[side].is_reading.store(false, std::memory_order_release); }

 private:
  std::array<Direction, 2> directions_;
  std::atomic<bool> is_joined_{false};
  std::array<std::atomic<bool>, 2> is_closed_{};
  // Shared with the transports; a waker must outlive the last peer that might call it.
  const std::array<std::shared_ptr<Waker>, 2> wakers_;
};

}  // namespace polyrail::loopback
