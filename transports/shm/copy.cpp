#include "transports/shm/copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)

#include <emmintrin.h>

namespace polyrail::shm {

void copy_past_caches(std::byte* target, const std::byte* source, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const auto misaligned = reinterpret_cast<std::uintptr_t>(target) % kLine;
  const std::size_t head = std::min(bytes, (kLine - misaligned) % kLine);
  std::memcpy(target, source, head);
  std::size_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    const auto* const from = reinterpret_cast<const __m128i*>(source + i);
    auto* const to = reinterpret_cast<__m128i*>(target + i);
    const __m128i words[4] = {_mm_loadu_si128(from), _mm_loadu_si128(from + 1),
                              _mm_loadu_si128(from + 2), _mm_loadu_si128(from + 3)};
    for (int word = 0; word < 4; ++word) _mm_stream_si128(to + word, words[word]);
  }
  std::memcpy(target + i, source + i, bytes - i);
  _mm_sfence();
}

}  // namespace polyrail::shm

#else

namespace polyrail::shm {

void copy_past_caches(std::byte* target, const std::byte* source, std::size_t bytes) {
  std::memcpy(target, source, bytes);
}

}  // namespace polyrail::shm

#endif
