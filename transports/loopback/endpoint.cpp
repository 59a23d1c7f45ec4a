#include "transports/loopback/endpoint.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/assert.hpp"

namespace polyrail::loopback {
namespace {

// Bounds of one progress() per endpoint, so that no peer waits long for another: it ends with the
// part of a slice that reaches the first, or after so many slots.
constexpr std::size_t kBudgetBytes = 256 * 1024;
constexpr int kBudgetSlots = 64;
constexpr std::size_t kPartBytes = 256 * 1024;
static_assert(kPartBytes % 64 == 0, "promised of the parts of a streamed slice");

}  // namespace

LoopbackEndpoint::LoopbackEndpoint(int peer, std::string rail, WireEnd end,
                                   Clock::time_point deadline)
    : Endpoint(peer),
      rail_(std::move(rail)),
      end_(std::move(end)),
      deadline_(deadline),
      tx_(&end_.wire->from(end_.side)),
      rx_(&end_.wire->from(1 - end_.side)) {
  control_.reserve(kMaxControlBytes);
}

LoopbackEndpoint::LoopbackEndpoint(int peer, std::string rail, Status why)
    : Endpoint(peer), rail_(std::move(rail)), failure_(std::move(why)) {}

LoopbackEndpoint::~LoopbackEndpoint() {
  if (end_.wire) end_.wire->close(end_.side);
}

void LoopbackEndpoint::publish() {
  auto& slot = next_slot();
  slot.stamp.store(++posted_);
}

Posted LoopbackEndpoint::put(const SliceHeader& header, const std::byte* source,
                             std::uint64_t cookie) {
  if (state_ != EndpointState::kUp || !has_room(1)) return Posted::kBusy;
  cookies_[posted_ % kSlots] = cookie;
  auto& slot = next_slot();
  slot.header = header;
  const bool is_inline = header.bytes <= kBufferedBytes;
  if (is_inline) {
    slot.kind = SlotKind::kInline;
    if (header.bytes > 0) std::memcpy(slot.bytes.data(), source, header.bytes);
  } else {
    slot.kind = SlotKind::kPosted;
    slot.source = source;
  }
  publish();
  end_.wire->wake(1 - end_.side);
  return is_inline ? Posted::kBuffered : Posted::kPosted;
}

Posted LoopbackEndpoint::send_control(std::span<const std::byte> message) {
  PR_ASSERT(message.size() <= kMaxControlBytes);
  const auto parts = message.empty() ? 1 : (message.size() - 1) / Slot::kInlineBytes + 1;
  static_assert(kMaxControlBytes <= kSlots / 2 * Slot::kInlineBytes);
  if (state_ != EndpointState::kUp || !has_room(static_cast<std::uint32_t>(parts))) {
    return Posted::kBusy;
  }
  for (std::size_t part = 0; part < parts; ++part) {
    const auto bytes =
        message.subspan(part * Slot::kInlineBytes,
                        std::min(Slot::kInlineBytes, message.size() - part * Slot::kInlineBytes));
    auto& slot = next_slot();
    slot.kind = part + 1 == parts ? SlotKind::kControlEnd : SlotKind::kControlPart;
    slot.header.bytes = static_cast<std::uint32_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), slot.bytes.begin());
    publish();
  }
  end_.wire->wake(1 - end_.side);
  return Posted::kBuffered;
}

bool LoopbackEndpoint::has_arrival() const {
  return rx_->slots[taken_ % kSlots].stamp.load() == taken_ + 1;
}

bool LoopbackEndpoint::has_news() const {
  if (state_ == EndpointState::kDown) return false;
  if (!end_.wire || end_.wire->is_closed(1 - end_.side)) return true;
  if (state_ == EndpointState::kConnecting) return end_.wire->is_joined();
  // A slice that was answered kLater is no news: the engine asks again when it has moved on.
  const bool is_waiting = was_stalled_ && !has_landing_;
  return tx_->consumed.load() != reported_ || (!is_waiting && has_arrival());
}

bool LoopbackEndpoint::progress(Sink& sink) {
  if (state_ == EndpointState::kDown) return false;
  if (state_ == EndpointState::kConnecting) return connect(sink);
  // Looked at first: what the peer sent before it closed is still delivered.
  const bool is_closed = end_.wire->is_closed(1 - end_.side);
  const bool has_reported = report_acknowledged(sink);
  const bool has_received = receive(sink);
  if (is_closed && !has_received) {
    go_down(sink, Status(StatusCode::kRemoteError, "the peer closed the rail"));
    return true;
  }
  return has_reported || has_received;
}

bool LoopbackEndpoint::connect(Sink& sink) {
  if (!end_.wire) {
    go_down(sink, failure_);
  } else if (end_.wire->is_joined()) {
    state_ = EndpointState::kUp;
    sink.on_up(*this);
  } else if (end_.wire->is_closed(1 - end_.side)) {
    go_down(sink, Status(StatusCode::kRemoteError, "the peer closed the rail"));
  } else if (Clock::now() >= deadline_) {
    go_down(sink, Status(StatusCode::kTimeout, "the peer did not connect in time"));
  } else {
    return false;
  }
  return true;
}

void LoopbackEndpoint::close() {
  state_ = EndpointState::kDown;
  if (end_.wire) end_.wire->close(end_.side);
}

void LoopbackEndpoint::go_down(Sink& sink, const Status& why) {
  close();
  sink.on_down(*this, Status(why.code(), "rank " + std::to_string(peer()) + " over rail '" + rail_ +
                                             "': " + why.message()));
}

bool LoopbackEndpoint::report_acknowledged(Sink& sink) {
  if (reported_ == posted_) return false;
  const auto consumed = tx_->consumed.load();
  if (reported_ == consumed) return false;
  const auto stalled = tx_->was_stalled.load(std::memory_order_relaxed);
  while (reported_ != consumed) {
    const auto index = reported_++ % kSlots;
    const auto kind = tx_->slots[index].kind;
    if (kind == SlotKind::kControlPart || kind == SlotKind::kControlEnd) continue;
    // The slot is free from here on: the engine may post again from within the call.
    sink.on_acknowledged(*this,
                         {.cookie = cookies_[index], .was_stalled = (stalled >> index & 1) != 0});
  }
  return true;
}

bool LoopbackEndpoint::receive(Sink& sink) {
  std::size_t moved_bytes = 0;
  bool has_received = false;
  for (int count = 0; count < kBudgetSlots && moved_bytes < kBudgetBytes && has_arrival();
       ++count) {
    const auto& slot = rx_->slots[taken_ % kSlots];
    if (slot.kind == SlotKind::kControlPart || slot.kind == SlotKind::kControlEnd) {
      receive_control(sink, slot);
    } else {
      if (!has_landing_) {
        landing_ = sink.on_slice(*this, slot.header);
        if (landing_.how == Landing::How::kLater) {
          was_stalled_ = true;
          break;
        }
        has_landing_ = true;
        landed_bytes_ = 0;
      }
      if (!move_part(sink, slot, moved_bytes)) break;
    }
    has_received = true;
  }
  return has_received;
}

void LoopbackEndpoint::receive_control(Sink& sink, const Slot& slot) {
  const bool is_end = slot.kind == SlotKind::kControlEnd;
  control_.insert(control_.end(), slot.bytes.begin(), slot.bytes.begin() + slot.header.bytes);
  consume();
  if (!is_end) return;
  sink.on_control(*this, control_);
  control_.clear();
}

bool LoopbackEndpoint::move_part(Sink& sink, const Slot& slot, std::size_t& moved_bytes) {
  const auto header = slot.header;
  const bool is_posted = slot.kind == SlotKind::kPosted;
  const auto offset = landed_bytes_;
  const auto bytes = landing_.how == Landing::How::kDiscard
                         ? 0
                         : std::min<std::size_t>(kPartBytes, header.bytes - offset);
  if (bytes > 0 || landing_.how == Landing::How::kStream) {
    if (is_posted && !end_.wire->read_begin(1 - end_.side)) return false;
    const auto* source = (is_posted ? slot.source : slot.bytes.data()) + offset;
    if (landing_.how == Landing::How::kStream) {
      sink.on_bytes(*this, header, offset, {source, bytes});
    } else {
      std::memcpy(landing_.target + offset, source, bytes);
    }
    if (is_posted) end_.wire->read_end(1 - end_.side);
  }
  landed_bytes_ += static_cast<std::uint32_t>(bytes);
  moved_bytes += bytes;
  if (landed_bytes_ < header.bytes && landing_.how != Landing::How::kDiscard) return true;
  const bool has_landed = landing_.how == Landing::How::kInto;
  consume();
  if (has_landed) sink.on_landed(*this, header);
  return true;
}

void LoopbackEndpoint::consume() {
  const auto bit = std::uint64_t{1} << taken_ % kSlots;
  const auto stalled = rx_->was_stalled.load(std::memory_order_relaxed);
  rx_->was_stalled.store(was_stalled_ ? stalled | bit : stalled & ~bit, std::memory_order_relaxed);
  was_stalled_ = false;
  has_landing_ = false;
  rx_->consumed.store(++taken_);
  end_.wire->wake(1 - end_.side);
}

}  // namespace polyrail::loopback
