// What arrives of messages, and where it lands.
#include <algorithm>
#include <new>
#include <utility>

#include "src/base/assert.hpp"
#include "src/exec/message_numbers.hpp"
#include "src/exec/messages.hpp"

namespace polyrail {
namespace {

// More than any machine can map is a count that went wrong.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 56;

}  // namespace

void Messages::Seen::add(std::uint64_t number) {
  if (number != below) {
    above.insert(number);
    return;
  }
  ++below;
  while (!above.empty() && *above.begin() == below) {
    above.erase(above.begin());
    ++below;
  }
}

std::uint32_t Messages::pack(Kind kind, MessagePurpose purpose, DataType type) {
  return static_cast<std::uint32_t>(kind) << 28 | static_cast<std::uint32_t>(purpose) << 24 |
         static_cast<std::uint32_t>(type);
}

std::uint32_t Messages::pack(Kind kind, std::uint32_t window) {
  return static_cast<std::uint32_t>(kind) << 28 | window;
}

std::optional<Messages::Fields> Messages::unpack(std::uint32_t call_kind) {
  Fields fields{static_cast<Kind>(call_kind >> 28),
                static_cast<MessagePurpose>(call_kind >> 24 & 15),
                static_cast<DataType>(call_kind & 0xff), call_kind & 0xffffff};
  if (fields.kind > Kind::kWindowEnd) return std::nullopt;
  const bool is_message = fields.kind == Kind::kEager || fields.kind == Kind::kRequest;
  if (is_message && (fields.purpose > MessagePurpose::kWindowCreation || !is_valid(fields.type))) {
    return std::nullopt;
  }
  return fields;
}

Messages::Incoming* Messages::find(Peer& peer, std::uint64_t number) const {
  const auto it = peer.incoming.find(number);
  return it == peer.incoming.end() ? nullptr : it->second.get();
}

WindowMemory* Messages::find_window(std::uint32_t id) const {
  for (const auto& window : windows_) {
    if (window->id() == id) return window.get();
  }
  return nullptr;
}

void Messages::broken(int rank, const std::string& what) {
  host_.fail(Status(StatusCode::kInternalError, "rank " + std::to_string(rank_) + ": rank " +
                                                    std::to_string(rank) + " sent " + what));
}

Landing Messages::on_slice(Endpoint& from, const SliceHeader& header) {
  constexpr Landing kDiscard{Landing::How::kDiscard, nullptr};
  const int rank = from.peer();
  Peer& peer = peers_[rank];
  const std::optional<Fields> fields = unpack(header.call_kind);
  if (!fields) {
    broken(rank, "a message of an unknown kind");
    return kDiscard;
  }
  const std::int64_t number = number_of(header.operation, peer.seen.below);
  if (number < 0) return kDiscard;
  return accept(peer, rank, static_cast<std::uint64_t>(number), header, *fields);
}

Landing Messages::accept(Peer& peer, int rank, std::uint64_t number, const SliceHeader& header,
                         const Fields& fields) {
  constexpr Landing kDiscard{Landing::How::kDiscard, nullptr};
  Incoming* incoming = find(peer, number);
  if (incoming == nullptr) {
    if (peer.seen.contains(number)) return kDiscard;  // for the second time
    std::unique_ptr<Incoming> made;
    switch (fields.kind) {
      case Kind::kEager:
      case Kind::kRequest:
        if (!is_closing_) made = accept_message(header, fields);
        break;
      case Kind::kPut:
      case Kind::kAverage:
      case Kind::kAverageReply:
        if (!is_closing_) made = accept_access(peer, rank, number, header, fields);
        break;
      case Kind::kGrant:
        on_grant(peer, rank, header.call_count);
        break;
      case Kind::kCredit:
        if (header.call_count > credit_bytes_ - std::min(credit_bytes_, peer.credit_bytes)) {
          broken(rank, "more credit than it was given");
        } else {
          peer.credit_bytes += header.call_count;
        }
        break;
      case Kind::kWindowEnd:
        if (WindowMemory* window = find_window(fields.window)) window->set_left(rank);
        break;
      case Kind::kData:
        broken(rank, "the bytes of a message that nobody asked for");
        break;
    }
    if (made == nullptr) {
      const bool is_gap_closed = number == peer.seen.below && !peer.seen.above.empty();
      peer.seen.add(number);
      if (is_gap_closed) match_all(peer);
      return kDiscard;
    }
    made->peer = rank;
    made->number = number;
    add(peer, std::move(made));
    incoming = find(peer, number);
    if (incoming == nullptr) return kDiscard;  // it had no bytes and is over
  }
  if (fields.kind == Kind::kRequest || incoming->is_complete) return kDiscard;
  if (incoming->kind == Kind::kRequest &&
      (fields.kind != Kind::kData || incoming->match == nullptr)) {
    broken(rank, "the bytes of a message that nobody asked for");
    return kDiscard;
  }
  return land(*incoming, header);
}

std::unique_ptr<Messages::Incoming> Messages::accept_message(const SliceHeader& header,
                                                             const Fields& fields) {
  if (header.call_count > kMostBytes / size_bytes(fields.type)) return nullptr;
  auto made = std::make_unique<Incoming>();
  made->kind = fields.kind;
  made->purpose = fields.purpose;
  made->type = fields.type;
  made->tag = header.signal;
  made->count = header.call_count;
  made->bytes = header.call_count * size_bytes(fields.type);
  made->is_complete = fields.kind == Kind::kEager && made->bytes == 0;
  return made;
}

std::unique_ptr<Messages::Incoming> Messages::accept_access(Peer& peer, int rank,
                                                            std::uint64_t number,
                                                            const SliceHeader& header,
                                                            const Fields& fields) {
  auto made = std::make_unique<Incoming>();
  made->kind = fields.kind;
  made->tag = header.signal;
  if (fields.kind == Kind::kAverageReply) {
    if (header.bytes == 0) {
      on_refusal(peer, rank, header.call_count);
      return nullptr;
    }
    const auto it = std::find_if(
        peer.averages.begin(), peer.averages.end(),
        [&](const Transfer* transfer) { return transfer->number == header.call_count; });
    if (it == peer.averages.end()) {
      broken(rank, "an average that nobody asked for");
      return nullptr;
    }
    made->match = *it;
    made->base = (*it)->target;
    made->bytes = (*it)->bytes();
    return made;
  }
  const auto it = std::find_if(windows_.begin(), windows_.end(),
                               [&](const auto& window) { return window->id() == fields.window; });
  if (it == windows_.end()) {  // ended: a put is dropped, who waits is told
    if (fields.kind == Kind::kAverage) {
      post_signal(rank, pack(Kind::kAverageReply, fields.window), number);
    }
    return nullptr;
  }
  made->window = *it;
  made->bytes = made->window->slot_bytes();
  made->version = header.call_count;
  bool is_right = header.signal < made->window->slot_count();
  if (fields.kind == Kind::kAverage) {
    made->type = static_cast<DataType>(header.call_count & 0xff);
    is_right =
        is_right && is_floating_point(made->type) && made->bytes % size_bytes(made->type) == 0;
  }
  if (!is_right) {
    broken(rank, "an access to a slot that its window does not have");
    return nullptr;
  }
  made->buffer = made->window->take_buffer();
  if (made->buffer == nullptr) {
    host_.fail(Status(StatusCode::kSystemError, "rank " + std::to_string(rank_) +
                                                    ": no memory for a slot of " +
                                                    std::to_string(made->bytes) + " bytes"));
    return nullptr;
  }
  made->base = made->buffer->bytes.get();
  return made;
}

// Takes a new one in, and lets it find its receive.
void Messages::add(Peer& peer, std::unique_ptr<Incoming> incoming) {
  Incoming& added = *incoming;
  const bool is_message = added.kind == Kind::kEager || added.kind == Kind::kRequest;
  peer.incoming.emplace(added.number, std::move(incoming));
  if (is_message) {
    // Mostly the last.
    auto at = peer.unmatched.end();
    while (at != peer.unmatched.begin() && (*(at - 1))->number > added.number) --at;
    peer.unmatched.insert(at, &added);
  }
  const std::uint64_t number = added.number;
  peer.seen.add(number);
  if (peer.seen.below == number + 1) {
    if (is_message) match_message(peer, added);
  } else if (peer.seen.below > number) {
    match_all(peer);
  }
}

Landing Messages::land(Incoming& incoming, const SliceHeader& header) {
  constexpr Landing kDiscard{Landing::How::kDiscard, nullptr};
  const std::uint64_t begin = header.offset_bytes;
  if (begin > incoming.bytes || header.bytes > incoming.bytes - begin) {
    broken(incoming.peer, std::to_string(header.bytes) + " bytes at " + std::to_string(begin) +
                              " of a message of " + std::to_string(incoming.bytes));
    return kDiscard;
  }
  if (incoming.bytes == 0) {
    on_complete(incoming);
    return kDiscard;
  }
  if (incoming.landed.contains(begin, begin + header.bytes)) return kDiscard;
  if (incoming.base == nullptr) {
    incoming.memory.reset(new (std::nothrow) std::byte[incoming.bytes]);
    if (incoming.memory == nullptr) {
      host_.fail(Status(StatusCode::kSystemError, "rank " + std::to_string(rank_) +
                                                      ": no memory for a message of " +
                                                      std::to_string(incoming.bytes) + " bytes"));
      return kDiscard;
    }
    incoming.base = incoming.memory.get();
  }
  ++incoming.open_count;
  return {Landing::How::kInto, incoming.base + begin};
}

void Messages::on_landed(Endpoint& from, const SliceHeader& header) {
  Peer& peer = peers_[from.peer()];
  const std::int64_t number = number_of(header.operation, peer.seen.below);
  Incoming* incoming = number < 0 ? nullptr : find(peer, static_cast<std::uint64_t>(number));
  if (incoming == nullptr || incoming->open_count == 0) return;
  --incoming->open_count;
  if (incoming->is_complete) return;
  incoming->landed.add(header.offset_bytes, header.offset_bytes + header.bytes,
                       [](std::uint64_t, std::uint64_t) {});
  if (incoming->match != nullptr) incoming->match->landed_bytes = incoming->landed.covered_bytes();
  if (incoming->landed.covered_bytes() == incoming->bytes) on_complete(*incoming);
}

void Messages::on_complete(Incoming& incoming) {
  incoming.is_complete = true;
  switch (incoming.kind) {
    case Kind::kEager:
    case Kind::kRequest:
      if (incoming.match != nullptr) deliver(incoming);
      return;
    case Kind::kPut: {
      if (incoming.open_count != 0) {
        host_.discard_incoming(incoming.peer, operation_of(incoming.number));
        incoming.open_count = 0;
      }
      incoming.window->publish(incoming.tag, std::move(incoming.buffer), incoming.version,
                               incoming.peer);
      erase(incoming);
      return;
    }
    case Kind::kAverage: {
      const std::shared_ptr<WindowMemory> window = incoming.window;
      const WindowBuffer* result =
          window->average(incoming.tag, incoming.buffer->bytes.get(), incoming.type, incoming.peer);
      if (result == nullptr) {
        host_.fail(Status(StatusCode::kSystemError,
                          "rank " + std::to_string(rank_) + ": no memory for an average"));
        return;
      }
      SliceHeader header;
      header.signal = incoming.tag;
      header.call_kind = pack(Kind::kAverageReply, window->id());
      header.call_count = incoming.number;
      Outgoing reply;
      reply.window = window;
      reply.reply = result;
      post(incoming.peer, header, result->bytes.get(), window->slot_bytes(), std::move(reply));
      erase(incoming);
      return;
    }
    case Kind::kAverageReply: {
      Transfer& average = *incoming.match;
      std::erase(peers_[incoming.peer].averages, &average);
      erase(incoming);
      average.is_landed = true;
      update(average);
      return;
    }
    default:
      PR_ASSERT(false);
  }
}

void Messages::on_grant(Peer& peer, int rank, std::uint64_t number) {
  const auto it = std::find_if(peer.requested.begin(), peer.requested.end(),
                               [number](const Transfer* send) { return send->number == number; });
  if (it == peer.requested.end()) {
    broken(rank, "a request for a message that is not there");
    return;
  }
  Transfer& send = **it;
  peer.requested.erase(it);
  send.is_granted = true;
  SliceHeader header;
  header.signal = send.tag;
  header.call_kind = pack(Kind::kData, send.purpose, send.type);
  header.call_count = send.count;
  post(rank, header, send.source, send.bytes(), Outgoing::of(send), number);
}

void Messages::on_refusal(Peer& peer, int rank, std::uint64_t number) {
  const auto it =
      std::find_if(peer.averages.begin(), peer.averages.end(),
                   [number](const Transfer* average) { return average->number == number; });
  if (it == peer.averages.end()) return;
  Transfer& average = **it;
  peer.averages.erase(it);
  average.refusal = Status(StatusCode::kInvalidUsage,
                           "rank " + std::to_string(rank_) + ": " + average.text() + ": rank " +
                               std::to_string(rank) + " has ended its window");
  average.is_landed = true;
  update(average);
}

}  // namespace polyrail
