// The sizes that were measured, by tests/transport/shm_bench.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyrail::shm {

// Staging area of one direction; a power of two.
inline constexpr std::uint32_t kStagingBytes = 1024 * 1024;

// Copied at a time into the staging area: it must still be in a cache when the receiver takes it.
inline constexpr std::uint32_t kPieceBytes = 32 * 1024;

// The beginning of the staging area, where the distance of the receiver is measured.
inline constexpr std::uint32_t kProbeBytes = 4096;

// Writing a line that a receiver nearby has read takes 1 to 3 ns on average within one L3 cache, or
// up to 10 while the lines around are written past the caches; 15 to 35 across. Less than
// the first makes a receiver that was far seem near, and more than the second shows that it is not.
inline constexpr std::int64_t kSeemsNearLineNs = 11;
inline constexpr std::int64_t kIsNearLineNs = 5;

// From this size on, payloads for a receiver that is far are copied past the caches.
inline constexpr std::uint32_t kPastCachesBytes = 512;

// Work per endpoint and progress(), so that one thread serves both directions in turn.
inline constexpr std::uint32_t kStageBudgetBytes = 128 * 1024;
inline constexpr std::uint32_t kTakeBudgetBytes = 256 * 1024;

}  // namespace polyrail::shm
