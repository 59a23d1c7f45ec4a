// The sizes that were measured; README.md says how.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyrail::shm {

// Copied at a time into the staging area: it must still be in a cache when the receiver takes it.
// Staging area of one direction; a power of two.
inline constexpr std::uint32_t kStagingBytes = 1024 * 1024;

inline constexpr std::uint32_t kPieceBytes = 32 * 1024;

// Work per endpoint and progress(), so that one thread serves both directions in turn.
inline constexpr std::uint32_t kStageBudgetBytes = 128 * 1024;
inline constexpr std::uint32_t kTakeBudgetBytes = 256 * 1024;

// From this size on a receiver that may reads the sender's memory itself.
inline constexpr std::uint32_t kPeerReadBytes = 0xFFFFFFFF;

// Read at a time from the sender's memory when the payload is streamed: it stays in the L2 cache.
inline constexpr std::uint32_t kBounceBytes = 128 * 1024;

}  // namespace polyrail::shm
