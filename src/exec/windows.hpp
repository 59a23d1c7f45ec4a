// WindowMemory: the slots of one window on this rank. Bytes arrive in a buffer of their own, which
// takes the place of the slot's when it is complete; a reader never sees half of it, and never
// holds up who publishes.
//
// Any thread; a slot's lock is held for as long as a pointer takes to change hands (averaging: to
// compute).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <polyrail/types.hpp>

namespace polyrail {

// Bytes of one slot. Owned by whoever has the unique_ptr, readable while `readers` counts one.
struct WindowBuffer {
  mutable std::atomic<int> readers{0};
  std::unique_ptr<std::byte[]> bytes;
};

class WindowMemory final {
 public:
  WindowMemory(std::uint32_t id, int rank_count, std::uint64_t slot_count,
               std::uint64_t slot_bytes);

  std::uint32_t id() const { return id_; }
  std::uint64_t slot_count() const { return slots_.size(); }
  std::uint64_t slot_bytes() const { return slot_bytes_; }

  // A buffer to fill; nullptr: no memory.
  std::unique_ptr<WindowBuffer> take_buffer();
  void give_back(std::unique_ptr<WindowBuffer> buffer);

  // Makes the buffer the slot's content unless that is newer: a higher version, or the same of a
  // higher rank.
  void publish(std::uint64_t slot, std::unique_ptr<WindowBuffer> buffer, std::uint64_t version,
               int writer);
  // Copies the slot and returns its version.
  std::uint64_t read(std::uint64_t slot, std::byte* data);
  // slot = (slot + data) / 2. The new content, held for reading until release(); nullptr: no
  // memory.
  const WindowBuffer* average(std::uint64_t slot, const std::byte* data, DataType type, int writer);
  void release(const WindowBuffer* buffer);

  // Which ranks have ended their window.
  void set_left(int peer) { has_left_[peer].store(true, std::memory_order_release); }
  bool has_left(int peer) const { return has_left_[peer].load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t kMostSpare = 16;

  struct Slot {
    std::mutex mutex;  // guards the rest
    std::unique_ptr<WindowBuffer> content;
    std::uint64_t version = 0;
    int writer = -1;
  };

  const std::uint32_t id_;
  const std::uint64_t slot_bytes_;
  std::vector<Slot> slots_;
  std::vector<std::atomic<bool>> has_left_;
  std::mutex spare_mutex_;                            // guards spare_
  std::vector<std::unique_ptr<WindowBuffer>> spare_;  // some are still being read
};

}  // namespace polyrail
