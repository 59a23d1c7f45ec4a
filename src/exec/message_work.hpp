// MessageWork: messages that were started together, and what is done when all of them are over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <polyrail/types.hpp>

#include "src/exec/operation.hpp"
#include "src/exec/windows.hpp"

namespace polyrail {

class MessageWork;

// What two ranks call; they must agree on it.
enum class MessagePurpose : std::uint8_t { kMessage, kExchange, kPairwiseAverage, kWindowCreation };

// Exchanges and averages of two ranks follow each other, so that a difference is found; the other
// purposes do not meet.
inline bool is_same_row(MessagePurpose a, MessagePurpose b) {
  const auto row = [](MessagePurpose purpose) {
    return purpose == MessagePurpose::kPairwiseAverage ? MessagePurpose::kExchange : purpose;
  };
  return row(a) == row(b);
}

// A call in words: "send of 8 float to rank 1, tag 3".
std::string message_text(MessagePurpose purpose, bool is_send, std::uint64_t count, DataType type,
                         int peer, std::uint32_t tag);

// One message of this rank: bytes to or from one peer. The caller fills in the first part.
struct Transfer {
  enum class Kind : std::uint8_t { kSend, kReceive, kPut, kAverage };

  Kind kind = Kind::kSend;
  MessagePurpose purpose = MessagePurpose::kMessage;
  DataType type = DataType::kInt8;
  int peer = -1;
  std::uint32_t tag = 0;  // of a put or average: the slot
  std::uint64_t count = 0;
  const std::byte* source = nullptr;     // of kSend, kPut, kAverage
  std::byte* target = nullptr;           // of kReceive, kAverage
  std::shared_ptr<WindowMemory> window;  // of kPut, kAverage; shared with the user's Window
  std::uint64_t version = 0;             // of kPut

  // --- belongs to Messages
  MessageWork* work = nullptr;
  std::uint64_t sent_bytes = 0;    // that the peer has taken, or that were copied
  std::uint64_t landed_bytes = 0;  // of kReceive, kAverage
  std::uint64_t number = 0;        // of the message that was sent
  bool is_sent = false;            // nothing reads the source any more
  bool is_landed = false;          // nothing writes to the target any more
  bool is_granted = false;         // of kSend: its bytes may go, or went
  bool is_done = false;
  Status refusal;  // by the peer; the outcome once the source is free

  std::uint64_t bytes() const {
    return window != nullptr ? window->slot_bytes() : count * size_bytes(type);
  }
  bool sends() const { return kind != Kind::kReceive; }
  bool receives() const { return kind == Kind::kReceive || kind == Kind::kAverage; }
  std::string text() const;
};

class MessageWork final : public WorkState {
 public:
  MessageWork(std::shared_ptr<Engine> mover, std::vector<Transfer> parts)
      : WorkState(std::move(mover)), transfers(std::move(parts)) {}

  std::vector<Transfer> transfers;  // addresses stay
  // Runs when all are over and went well, before the outcome is told. May be empty.
  std::function<void()> finish;
  std::vector<std::byte> scratch;  // for `finish`

  // --- belongs to Messages and the engine
  std::size_t open_count = 0;
  std::size_t index = 0;  // among those that are active
  double deadline_us = 0;
  bool needs_thread = false;  // counted as a duty of the engine's thread
};

}  // namespace polyrail
