// From the arguments of a message to a MessageWork, or the reason why they cannot be right.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <polyrail/message.hpp>
#include <polyrail/status.hpp>

#include "src/exec/message_work.hpp"

namespace polyrail {

// Who makes them: the rank, of how many, and what moves them on (null for blocking calls).
struct MessageCaller {
  int rank = 0;
  int rank_count = 1;
  std::shared_ptr<Engine> engine;
};

Result<std::shared_ptr<MessageWork>> make_messages(const MessageCaller& caller,
                                                   std::span<const Message> messages);
Result<std::shared_ptr<MessageWork>> make_exchange(const MessageCaller& caller, const void* send,
                                                   void* receive, std::uint64_t count,
                                                   DataType type, int peer);
Result<std::shared_ptr<MessageWork>> make_pairwise_average(const MessageCaller& caller, void* data,
                                                           std::uint64_t count, DataType type,
                                                           int peer);

}  // namespace polyrail
