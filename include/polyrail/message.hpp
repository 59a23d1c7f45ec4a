// Message: one send or receive between two ranks, as a value.
#pragma once

#include <cstdint>

#include <polyrail/types.hpp>

namespace polyrail {

// The messages from one rank to another with the same tag are received in the order in which they
// were sent; tags do not wait for each other. Sender and receiver give the same count and type, or
// the communicator fails on both with both calls in the message.
struct Message {
  enum class Direction : std::uint8_t { kSend, kReceive };

  Direction direction = Direction::kSend;
  const void* source = nullptr;  // of a send; null is fine for no elements
  void* target = nullptr;        // of a receive; null is fine for no elements
  std::uint64_t count = 0;       // elements
  DataType type = DataType::kFloat32;
  int peer = 0;  // this rank itself is allowed
  std::uint32_t tag = 0;

  static Message send(const void* source, std::uint64_t count, DataType type, int peer,
                      std::uint32_t tag = 0) {
    return {Direction::kSend, source, nullptr, count, type, peer, tag};
  }
  static Message receive(void* target, std::uint64_t count, DataType type, int peer,
                         std::uint32_t tag = 0) {
    return {Direction::kReceive, nullptr, target, count, type, peer, tag};
  }
};

}  // namespace polyrail
