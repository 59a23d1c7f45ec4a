#include "src/exec/windows.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/kernels.hpp"
#include "src/base/assert.hpp"

namespace polyrail {

WindowMemory::WindowMemory(std::uint32_t id, int rank_count, std::uint64_t slot_count,
                           std::uint64_t slot_bytes)
    : id_(id), slot_bytes_(slot_bytes), slots_(slot_count), has_left_(rank_count) {}

std::unique_ptr<WindowBuffer> WindowMemory::take_buffer() {
  {
    const std::lock_guard lock(spare_mutex_);
    const auto idle = std::find_if(spare_.begin(), spare_.end(), [](const auto& buffer) {
      return buffer->readers.load(std::memory_order_acquire) == 0;
    });
    if (idle != spare_.end()) {
      std::unique_ptr<WindowBuffer> buffer = std::move(*idle);
      spare_.erase(idle);
      return buffer;
    }
  }
  auto buffer = std::make_unique<WindowBuffer>();
  buffer->bytes.reset(new (std::nothrow) std::byte[slot_bytes_]);
  if (buffer->bytes == nullptr) return nullptr;
  return buffer;
}

void WindowMemory::give_back(std::unique_ptr<WindowBuffer> buffer) {
  if (buffer == nullptr) return;
  const std::lock_guard lock(spare_mutex_);
  spare_.push_back(std::move(buffer));
  // Those that are still being read have to stay.
  for (auto it = spare_.begin(); spare_.size() > kMostSpare && it != spare_.end();) {
    it = (*it)->readers.load(std::memory_order_acquire) == 0 ? spare_.erase(it) : it + 1;
  }
}

void WindowMemory::publish(std::uint64_t slot, std::unique_ptr<WindowBuffer> buffer,
                           std::uint64_t version, int writer) {
  Slot& place = slots_[slot];
  {
    const std::lock_guard lock(place.mutex);
    if (std::pair(version, writer) >= std::pair(place.version, place.writer)) {
      std::swap(place.content, buffer);
      place.version = version;
      place.writer = writer;
    }
  }
  give_back(std::move(buffer));
}

std::uint64_t WindowMemory::read(std::uint64_t slot, std::byte* data) {
  Slot& place = slots_[slot];
  WindowBuffer* content = nullptr;
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(place.mutex);
    content = place.content.get();
    version = place.version;
    if (content != nullptr) content->readers.fetch_add(1, std::memory_order_relaxed);
  }
  if (content == nullptr) {
    std::memset(data, 0, slot_bytes_);
    return version;
  }
  std::memcpy(data, content->bytes.get(), slot_bytes_);
  release(content);
  return version;
}

const WindowBuffer* WindowMemory::average(std::uint64_t slot, const std::byte* data, DataType type,
                                          int writer) {
  std::unique_ptr<WindowBuffer> buffer = take_buffer();
  if (buffer == nullptr) return nullptr;
  const WindowBuffer* result = buffer.get();
  Slot& place = slots_[slot];
  {
    const std::lock_guard lock(place.mutex);
    if (place.content == nullptr) {
      std::memset(buffer->bytes.get(), 0, slot_bytes_);
    }
    const void* const before =
        place.content == nullptr ? buffer->bytes.get() : place.content->bytes.get();
    Finish halve;
    halve.divide_by = 2;
    reduce(type, ReduceOp::kSum, before, data, buffer->bytes.get(), slot_bytes_ / size_bytes(type),
           halve);
    buffer->readers.fetch_add(1, std::memory_order_relaxed);
    std::swap(place.content, buffer);
    ++place.version;
    place.writer = writer;
  }
  give_back(std::move(buffer));
  return result;
}

void WindowMemory::release(const WindowBuffer* buffer) {
  buffer->readers.fetch_sub(1, std::memory_order_release);
}

}  // namespace polyrail
