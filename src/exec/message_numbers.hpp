// The numbers of messages from one rank to another, as headers carry them: in 31 bits.
#pragma once

#include <cstdint>

#include "src/exec/messages.hpp"

namespace polyrail {

inline constexpr std::uint64_t kMessageNumberMask = Messages::kFlag - 1;

inline std::uint32_t operation_of(std::uint64_t number) {
  return Messages::kFlag | static_cast<std::uint32_t>(number & kMessageNumberMask);
}

// The number that a header means: the one nearest to those seen last. Negative: older than any.
inline std::int64_t number_of(std::uint32_t operation, std::uint64_t near) {
  const std::uint64_t ahead = (operation - near) & kMessageNumberMask;
  const auto signed_ahead = static_cast<std::int64_t>(ahead);
  return static_cast<std::int64_t>(near) +
         (ahead > kMessageNumberMask / 2
              ? signed_ahead - static_cast<std::int64_t>(kMessageNumberMask) - 1
              : signed_ahead);
}

}  // namespace polyrail
