// GrowingMemory: page-aligned memory that is kept for the next use and only ever grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace polyrail {

class GrowingMemory final {
 public:
  // Not valid any more after the next call that asks for more; what was in it is not kept then.
  std::byte* at_least(std::uint64_t bytes) {
    if (bytes_ < bytes) {
      constexpr std::size_t kPage = 4096;
      bytes_ = bytes;
      memory_.resize(bytes + kPage);
      const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
      aligned_ = memory_.data() + (kPage - address % kPage) % kPage;
    }
    return aligned_;
  }

 private:
  std::vector<std::byte> memory_;
  std::byte* aligned_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace polyrail
