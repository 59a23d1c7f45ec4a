// GrowingMemory: page-aligned memory that is kept for the next use and only ever grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace polyrail {

class GrowingMemory final {
 public:
  // Not valid any more after the next call that asks for more; what was in it is not kept then.
  // nullptr: there is not so much.
  std::byte* at_least(std::uint64_t bytes) {
    constexpr std::size_t kPage = 4096;
    if (aligned_ != nullptr && bytes <= bytes_) return aligned_;
    memory_.reset();
    aligned_ = nullptr;
    memory_.reset(new (std::nothrow) std::byte[bytes + kPage]);
    if (memory_ == nullptr) return nullptr;
    bytes_ = bytes;
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    aligned_ = memory_.get() + (kPage - address % kPage) % kPage;
    return aligned_;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::byte* aligned_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace polyrail
