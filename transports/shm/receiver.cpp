#include "transports/shm/receiver.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transports/shm/tuning.hpp"

namespace polyrail::shm {
namespace {

constexpr std::uint64_t round_up_to_line(std::uint64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

bool is_staged(EntryKind kind) {
  return kind == EntryKind::kStaged || kind == EntryKind::kStreamed || kind == EntryKind::kControl;
}

bool is_control(EntryKind kind) {
  return kind == EntryKind::kControl || kind == EntryKind::kControlLine;
}

// What the peer wrote is believed as far as it cannot do harm.
bool is_sound(const Entry& entry, std::uint32_t staging_bytes) {
  const std::uint32_t bytes = entry.header.bytes;
  switch (entry.kind) {
    case EntryKind::kInline:
    case EntryKind::kControlLine:
      return bytes <= kInlineBytes;
    case EntryKind::kControl:
      return bytes <= Endpoint::kMaxControlBytes;
    case EntryKind::kStaged:
      return bytes <= staging_bytes;
    case EntryKind::kStreamed:
    case EntryKind::kShared:
      return true;
  }
  return false;
}

}  // namespace

Receiver::Receiver(Direction& direction, std::uint32_t staging_bytes, Crossing& crossing,
                   PeerBlocks blocks)
    : direction_(direction),
      staging_bytes_(staging_bytes),
      crossing_(crossing),
      blocks_(std::move(blocks)) {}

bool Receiver::has_entry() const {
  return head().stamp.load() == crossing_.taken + 1;
}

Receiver::Outcome Receiver::progress(Endpoint& self, Sink& sink) {
  Outcome outcome;
  if (!has_entry()) {
    // So that after the next entry the look at the one behind it need not wait for its line.
    __builtin_prefetch(&direction_.entry(crossing_.taken + 1));
    return outcome;
  }
  std::uint32_t budget_bytes = kTakeBudgetBytes;
  const std::uint32_t taken_before = crossing_.taken;
  while (has_entry() && budget_bytes != 0) {
    Entry& entry = head();
    if (!is_sound(entry, staging_bytes_)) {
      outcome.failure = {StatusCode::kRemoteError, "the peer posted an entry that makes no sense"};
      break;
    }
    if (is_control(entry.kind)) {
      note_acknowledged(entry);
      take_control(self, sink, entry);
      continue;
    }
    if (!has_landing_) {
      note_acknowledged(entry);
      landing_ = sink.on_slice(self, entry.header);
      if (landing_.how == Landing::How::kLater) {
        was_stalled_ = true;
        break;
      }
      has_landing_ = true;
    }
    const std::uint32_t budget_before = budget_bytes;
    outcome.failure = move(self, sink, entry, budget_bytes);
    if (!outcome.failure.is_ok()) break;
    outcome.has_moved |= budget_bytes != budget_before;
    if (moved_bytes_ != entry.header.bytes) break;
    const SliceHeader header = entry.header;
    const bool has_landed = landing_.how == Landing::How::kInto;
    finish(entry);  // before the call: what it posts brings the acknowledgement along
    if (has_landed) sink.on_landed(self, header);
  }
  if (crossing_.taken != taken_before) {
    outcome.has_moved = true;
    direction_.taken.store(crossing_.taken);
    ringer_->wake_for(kAcknowledgements);
  }
  return outcome;
}

void Receiver::finish(Entry& entry) {
  if (was_stalled_) entry.was_stalled = true;  // else the line stays with the sender
  was_stalled_ = has_landing_ = false;
  moved_bytes_ = 0;
  ++crossing_.taken;
}

void Receiver::note_acknowledged(const Entry& entry) {
  const auto known = static_cast<std::uint16_t>(crossing_.acknowledged);
  const auto more = static_cast<std::int16_t>(static_cast<std::uint16_t>(entry.taken - known));
  if (more > 0) crossing_.acknowledged += static_cast<std::uint32_t>(more);
}

void Receiver::take_control(Endpoint& self, Sink& sink, Entry& entry) {
  const std::uint32_t bytes = entry.header.bytes;
  std::array<std::byte, Endpoint::kMaxControlBytes> message;
  if (entry.kind == EntryKind::kControlLine) {
    std::memcpy(message.data(), entry.bytes.data(), bytes);
  } else {
    const auto begin = static_cast<std::uint32_t>(freed_bytes_ % staging_bytes_);
    const std::uint32_t first = std::min(bytes, staging_bytes_ - begin);
    std::memcpy(message.data(), direction_.staging() + begin, first);
    std::memcpy(message.data() + first, direction_.staging(), bytes - first);
    free_staged(entry.kind, bytes, true);
  }
  finish(entry);
  sink.on_control(self, std::span(message).first(bytes));
}

Status Receiver::move(Endpoint& self, Sink& sink, const Entry& entry, std::uint32_t& budget_bytes) {
  const SliceHeader& header = entry.header;
  if (header.bytes == 0 && landing_.how == Landing::How::kStream) {
    sink.on_bytes(self, header, 0, {});
  }
  if (landing_.how == Landing::How::kDiscard && !is_staged(entry.kind)) {
    moved_bytes_ = header.bytes;  // nothing to take off the wire
  }
  while (moved_bytes_ != header.bytes && budget_bytes != 0) {
    const std::uint32_t most = std::min(header.bytes - moved_bytes_, budget_bytes);
    const Result<Part> found = next_part(entry, most);
    if (!found.is_ok()) return found.status();
    const Part part = found.value();
    if (part.size == 0) break;
    if (landing_.how == Landing::How::kStream) {
      sink.on_bytes(self, header, moved_bytes_, {part.bytes, part.size});
    } else if (landing_.how == Landing::How::kInto) {
      std::memcpy(landing_.target + moved_bytes_, part.bytes, part.size);
    }
    // A sender that has closed may have changed memory that was still being read.
    if (entry.kind == EntryKind::kShared && direction_.is_closed.load() != 0) {
      return {StatusCode::kRemoteError, "the peer closed the rail in the middle of a slice"};
    }
    moved_bytes_ += part.size;
    budget_bytes -= std::min<std::uint32_t>(budget_bytes, round_up_to_line(part.size));
    free_staged(entry.kind, part.size, moved_bytes_ == header.bytes);
  }
  return ok();
}

// The next bytes of the slice at the head that lie side by side, at most so many. All but the last
// part are whole lines, since the budget is.
Result<Receiver::Part> Receiver::next_part(const Entry& entry, std::uint32_t most_bytes) {
  switch (entry.kind) {
    case EntryKind::kInline:
      return Part{entry.bytes.data(), entry.header.bytes};
    case EntryKind::kShared: {
      const auto base = blocks_.find(entry.shared, entry.header.bytes);
      if (!base.is_ok()) return base.status();
      return Part{base.value() + moved_bytes_, most_bytes};
    }
    default:
      break;
  }
  std::uint64_t there = most_bytes;
  if (entry.kind == EntryKind::kStreamed) {
    there = std::min<std::uint64_t>(there, direction_.staged_bytes.load() - freed_bytes_);
  }
  const auto begin = static_cast<std::uint32_t>(freed_bytes_ % staging_bytes_);
  const auto size =
      std::min({static_cast<std::uint32_t>(there), kPieceBytes, staging_bytes_ - begin});
  return Part{direction_.staging() + begin, size};
}

void Receiver::free_staged(EntryKind kind, std::uint32_t bytes, bool is_last) {
  if (!is_staged(kind)) return;
  freed_bytes_ += bytes;
  if (is_last) freed_bytes_ = round_up_to_line(freed_bytes_);
  direction_.freed_bytes.store(freed_bytes_);
  const std::uint64_t backlog_bytes =
      direction_.staged_bytes.load(std::memory_order_relaxed) - freed_bytes_;
  if (backlog_bytes <= staging_bytes_ / 2) ringer_->wake_for(kRoom);
}

bool Receiver::has_news() const {
  if (!has_entry()) return false;
  if (was_stalled_ && !has_landing_) return false;  // asked about; the answer was kLater
  const Entry& entry = head();
  if (has_landing_ && entry.kind == EntryKind::kStreamed) {
    return direction_.staged_bytes.load() != freed_bytes_;
  }
  return true;
}

}  // namespace polyrail::shm
