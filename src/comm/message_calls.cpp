#include "src/comm/message_calls.hpp"

#include <string>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"

namespace polyrail {
namespace {

// One buffer of a call.
struct Argument {
  const char* what;
  const void* memory;
};

Status check(const MessageCaller& caller, const std::string& call, const Argument& argument,
             std::uint64_t count, DataType type, int peer) {
  const auto invalid = [&](const std::string& cause) {
    return Status(StatusCode::kInvalidArgument,
                  call + " on rank " + std::to_string(caller.rank) + ": " + cause);
  };
  if (!is_valid(type)) {
    return invalid("the data type " + std::to_string(static_cast<int>(type)) + " is unknown");
  }
  if (peer < 0 || peer >= caller.rank_count) {
    return invalid("there is no rank " + std::to_string(peer) + " among " +
                   std::to_string(caller.rank_count));
  }
  // More than any machine can map is a count that went wrong.
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 56;
  if (count > kMostBytes / size_bytes(type)) {
    return invalid(std::to_string(count) + " elements of " + std::string(name(type)) +
                   " do not fit into memory");
  }
  if (count > 0 && argument.memory == nullptr) {
    return invalid(std::string(argument.what) + " is null");
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(argument.memory);
  if (begin + count * size_bytes(type) < begin) {
    return invalid(std::to_string(count) + " elements do not fit behind the given address");
  }
  return ok();
}

Transfer transfer_of(Transfer::Kind kind, MessagePurpose purpose, const void* source, void* target,
                     std::uint64_t count, DataType type, int peer, std::uint32_t tag) {
  Transfer transfer;
  transfer.kind = kind;
  transfer.purpose = purpose;
  transfer.type = type;
  transfer.peer = peer;
  transfer.tag = tag;
  transfer.count = count;
  transfer.source = static_cast<const std::byte*>(source);
  transfer.target = static_cast<std::byte*>(target);
  return transfer;
}

std::vector<Transfer> both_ways(MessagePurpose purpose, const void* send, void* receive,
                                std::uint64_t count, DataType type, int peer) {
  return {transfer_of(Transfer::Kind::kReceive, purpose, nullptr, receive, count, type, peer, 0),
          transfer_of(Transfer::Kind::kSend, purpose, send, nullptr, count, type, peer, 0)};
}

}  // namespace

Result<std::shared_ptr<MessageWork>> make_messages(const MessageCaller& caller,
                                                   std::span<const Message> messages) {
  std::vector<Transfer> transfers;
  transfers.reserve(messages.size());
  for (const Message& message : messages) {
    const bool is_send = message.direction == Message::Direction::kSend;
    const Argument argument =
        is_send ? Argument{"the source", message.source} : Argument{"the target", message.target};
    if (Status status = check(caller, is_send ? "send" : "receive", argument, message.count,
                              message.type, message.peer);
        !status.is_ok()) {
      return status;
    }
    transfers.push_back(transfer_of(is_send ? Transfer::Kind::kSend : Transfer::Kind::kReceive,
                                    MessagePurpose::kMessage, message.source, message.target,
                                    message.count, message.type, message.peer, message.tag));
  }
  return std::make_shared<MessageWork>(caller.engine, std::move(transfers));
}

Result<std::shared_ptr<MessageWork>> make_exchange(const MessageCaller& caller, const void* send,
                                                   void* receive, std::uint64_t count,
                                                   DataType type, int peer) {
  for (const Argument& argument :
       {Argument{"what is sent", send}, Argument{"what is received", receive}}) {
    if (Status status = check(caller, "exchange", argument, count, type, peer); !status.is_ok()) {
      return status;
    }
  }
  const auto out = reinterpret_cast<std::uintptr_t>(send);
  const auto in = reinterpret_cast<std::uintptr_t>(receive);
  const std::uint64_t bytes = count * size_bytes(type);
  if (out < in + bytes && in < out + bytes) {
    return Status(StatusCode::kInvalidArgument, "exchange on rank " + std::to_string(caller.rank) +
                                                    ": what is sent and what is received overlap");
  }
  return std::make_shared<MessageWork>(
      caller.engine, both_ways(MessagePurpose::kExchange, send, receive, count, type, peer));
}

Result<std::shared_ptr<MessageWork>> make_pairwise_average(const MessageCaller& caller, void* data,
                                                           std::uint64_t count, DataType type,
                                                           int peer) {
  const Argument argument{"the data", data};
  if (Status status = check(caller, "pairwise_average", argument, count, type, peer);
      !status.is_ok()) {
    return status;
  }
  if (!is_floating_point(type)) {
    return Status(StatusCode::kInvalidArgument,
                  "pairwise_average on rank " + std::to_string(caller.rank) + ": " +
                      std::string(name(type)) + " is not a floating-point type");
  }
  auto work = std::make_shared<MessageWork>(caller.engine, std::vector<Transfer>{});
  work->scratch.resize(count * size_bytes(type));
  work->transfers =
      both_ways(MessagePurpose::kPairwiseAverage, data, work->scratch.data(), count, type, peer);
  work->finish = [theirs = work->scratch.data(), data, count, type, is_first = caller.rank < peer] {
    if (count == 0) return;
    Finish halve;
    halve.divide_by = 2;
    const void* mine = data;
    reduce(type, ReduceOp::kSum, is_first ? mine : theirs, is_first ? theirs : mine, data, count,
           halve);
  };
  return work;
}

}  // namespace polyrail
