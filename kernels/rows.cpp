// Rows gathered and scattered by a list of indices.
#include <cstdint>
#include <cstring>

#include "kernels/kernels.hpp"

namespace polyrail {

void pack_rows(const void* source, std::size_t row_bytes, std::span<const std::int64_t> rows,
               void* target) {
  if (row_bytes == 0) return;  // the pointers may be null
  auto* to = static_cast<std::uint8_t*>(target);
  for (const std::int64_t row : rows) {
    std::memcpy(to, static_cast<const std::uint8_t*>(source) + row * row_bytes, row_bytes);
    to += row_bytes;
  }
}

void unpack_rows(const void* source, std::size_t row_bytes, std::span<const std::int64_t> rows,
                 void* target) {
  if (row_bytes == 0) return;
  const auto* from = static_cast<const std::uint8_t*>(source);
  for (const std::int64_t row : rows) {
    std::memcpy(static_cast<std::uint8_t*>(target) + row * row_bytes, from, row_bytes);
    from += row_bytes;
  }
}

}  // namespace polyrail
