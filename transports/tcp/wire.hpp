// What travels between two ranks once they have proven who they are: frames.
//
//   slice    prefix, SliceHeader, payload
//   control  prefix, message
//   ack      prefix
//
// Each prefix acknowledges what has been taken in so far. All numbers are little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transports/transport.hpp"

namespace polyrail::tcp {

static_assert(std::endian::native == std::endian::little, "frames are written as they lie");

enum class FrameKind : std::uint8_t { kSlice = 1, kControl = 2, kAck = 3 };

struct FramePrefix {
  FrameKind kind = FrameKind::kAck;
  std::uint8_t flags = 0;
  std::uint16_t check = 0;        // over the prefix and, if there is one, the slice header
  std::uint32_t sequence = 0;     // of slices and controls of the endpoint, over all its sockets
  std::uint32_t taken_count = 0;  // slices taken in from this socket, modulo 2^32
  std::uint32_t bytes = 0;        // of the payload or the message
  std::uint32_t taken_us = 0;     // when the last large one of these was, modulo 2^32
  std::uint32_t ahead_bytes = 0;  // that had arrived on this socket behind that one by then
};
static_assert(sizeof(FramePrefix) == 24);

// In FramePrefix::flags: a slice acknowledged here for the first time had to wait for this rank to
// enter the operation, and so did all that was under way behind it.
inline constexpr std::uint8_t kStalledFlag = 1;

inline constexpr std::size_t kPrefixBytes = sizeof(FramePrefix);
inline constexpr std::size_t kSliceHeadBytes = kPrefixBytes + sizeof(SliceHeader);
// Slices up to this size are copied by the sender, so that one system call sends them and the
// source is free at once.
inline constexpr std::size_t kBufferedBytes = 8192;

// Detects a frame that was cut or overwritten, not an adversary: sums of words times odd constants.
inline std::uint16_t frame_check(const std::byte* head, std::size_t bytes) {
  constexpr std::uint64_t kFactors[] = {0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                                        0xD6E8FEB86659FD93, 0xFF51AFD7ED558CCD, 0x27D4EB2F165667C5,
                                        0x85EBCA77C2B2AE63};
  static_assert(kSliceHeadBytes / sizeof(std::uint64_t) == std::size(kFactors));
  constexpr std::uint64_t kWithoutCheck = ~(std::uint64_t{0xFFFF} << 16);
  std::uint64_t sum = 0x706F6C797261696C;
  for (std::size_t i = 0; i * sizeof(std::uint64_t) < bytes; ++i) {
    std::uint64_t word;
    std::memcpy(&word, head + i * sizeof(word), sizeof(word));
    if (i == 0) word &= kWithoutCheck;
    sum += (word ^ (word >> 29)) * kFactors[i];
  }
  sum ^= sum >> 32;
  return static_cast<std::uint16_t>(sum ^ (sum >> 16));
}

}  // namespace polyrail::tcp
