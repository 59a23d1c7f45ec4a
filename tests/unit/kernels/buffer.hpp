// Elements at a chosen distance from an aligned address, with guard bytes on both sides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace polyrail {

class GuardedBuffer {
 public:
  GuardedBuffer(const std::vector<std::uint8_t>& elements, std::size_t misalignment)
      : bytes_(elements.size()), storage_(elements.size() + 2 * kGuard + kAlignment, kMark) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data()) + kGuard;
    start_ = kGuard + (kAlignment - address % kAlignment) % kAlignment + misalignment;
    if (bytes_ != 0) std::memcpy(data(), elements.data(), bytes_);
  }
  std::uint8_t* data() { return storage_.data() + start_; }
  bool is_guard_intact() const {
    const auto is_mark = [](std::uint8_t byte) { return byte == kMark; };
    return std::all_of(storage_.begin(), storage_.begin() + start_, is_mark) &&
           std::all_of(storage_.begin() + start_ + bytes_, storage_.end(), is_mark);
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kGuard = 128;
  static constexpr std::uint8_t kMark = 0xa5;
  std::size_t bytes_;
  std::vector<std::uint8_t> storage_;
  std::size_t start_;
};

}  // namespace polyrail
