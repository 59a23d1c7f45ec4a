#include "src/exec/message_work.hpp"

namespace polyrail {

std::string message_text(MessagePurpose purpose, bool is_send, std::uint64_t count, DataType type,
                         int peer, std::uint32_t tag) {
  const std::string what = " of " + std::to_string(count) + " " + std::string(name(type));
  const std::string whom = "rank " + std::to_string(peer);
  switch (purpose) {
    case MessagePurpose::kMessage:
      break;
    case MessagePurpose::kExchange:
      return "exchange" + what + " with " + whom;
    case MessagePurpose::kPairwiseAverage:
      return "pairwise_average" + what + " with " + whom;
    case MessagePurpose::kWindowCreation:
      return "create_window with " + whom;
  }
  return (is_send ? "send" : "receive") + what + (is_send ? " to " : " from ") + whom + ", tag " +
         std::to_string(tag);
}

std::string Transfer::text() const {
  if (window == nullptr) {
    return message_text(purpose, kind == Kind::kSend, count, type, peer, tag);
  }
  return std::string(kind == Kind::kPut ? "put to" : "average with") + " slot " +
         std::to_string(tag) + " of rank " + std::to_string(peer);
}

}  // namespace polyrail
