#include "transports/shm/sender.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/assert.hpp"
#include "transports/shm/copy.hpp"
#include "transports/shm/tuning.hpp"

namespace polyrail::shm {
namespace {

constexpr std::uint64_t round_up_to_line(std::uint64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

}  // namespace

Sender::Sender(Direction& direction, std::uint32_t staging_bytes, Crossing& crossing)
    : direction_(direction),
      staging_bytes_(staging_bytes),
      crossing_(crossing),
      outstanding_(kEntryCount) {}

void Sender::start(const Ringer& ringer, SharedMemoryView& blocks) {
  ringer_ = &ringer;
  blocks_ = &blocks;
}

Posted Sender::put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie) {
  was_busy_ = true;  // until the end of this call shows otherwise
  if (!has_entry()) return Posted::kBusy;
  Outstanding outstanding{.cookie = cookie, .is_slice = true};
  if (header.bytes <= kInlineBytes) {
    Entry& entry = next_entry(header, EntryKind::kInline);
    if (header.bytes != 0) std::memcpy(entry.bytes.data(), source, header.bytes);
    return publish(entry, std::move(outstanding));
  }
  if (header.bytes <= kBufferedBytes) {
    return put_whole(header, source, EntryKind::kStaged, std::move(outstanding));
  }

  outstanding.is_buffered = false;
  if (SharedBlockHandle block = blocks_->find(source, header.bytes)) {
    Entry& entry = next_entry(header, EntryKind::kShared);
    entry.shared = {.block_id = block->id(),
                    .offset_bytes = static_cast<std::uint64_t>(source - block->base()),
                    .descriptor = block->descriptor()};
    outstanding.block = std::move(block);
    return publish(entry, std::move(outstanding));
  }
  outstanding.source = source;
  const Posted posted = publish(next_entry(header, EntryKind::kStreamed), std::move(outstanding));
  stage();
  return posted;
}

Posted Sender::send_control(std::span<const std::byte> message) {
  PR_ASSERT(message.size() <= Endpoint::kMaxControlBytes);
  was_busy_ = true;
  if (!has_entry()) return Posted::kBusy;
  SliceHeader header;
  header.bytes = static_cast<std::uint32_t>(message.size());
  if (message.size() > kInlineBytes) {
    return put_whole(header, message.data(), EntryKind::kControl, Outstanding());
  }
  Entry& entry = next_entry(header, EntryKind::kControlLine);
  if (!message.empty()) std::memcpy(entry.bytes.data(), message.data(), message.size());
  return publish(entry, Outstanding());
}

Entry& Sender::next_entry(const SliceHeader& header, EntryKind kind) {
  Entry& entry = direction_.entry(posted_);
  entry.kind = kind;
  entry.was_stalled = false;
  entry.taken = static_cast<std::uint16_t>(crossing_.taken);
  entry.header = header;
  return entry;
}

Posted Sender::publish(Entry& entry, Outstanding outstanding) {
  const bool is_buffered = outstanding.is_buffered;
  if (is_staged_up() && entry.kind != EntryKind::kStreamed) ++staging_;
  referred_count_ += is_buffered ? 0 : 1;
  outstanding_[posted_ % kEntryCount] = std::move(outstanding);
  ++posted_;
  was_busy_ = false;
  entry.stamp.store(posted_);
  ringer_->wake_for(kArrivals);
  return is_buffered ? Posted::kBuffered : Posted::kPosted;
}

// A payload that must be staged at once or not at all: only when nothing waits before it.
Posted Sender::put_whole(const SliceHeader& header, const std::byte* source, EntryKind kind,
                         Outstanding outstanding) {
  if (!is_staged_up() || room_bytes(header.bytes) < header.bytes) return Posted::kBusy;
  copy_in(source, header.bytes);
  staged_bytes_ = round_up_to_line(staged_bytes_);
  direction_.staged_bytes.store(staged_bytes_, std::memory_order_relaxed);
  return publish(next_entry(header, kind), std::move(outstanding));
}

// How much of the staging area is free; asks the receiver only if it was too little.
std::uint64_t Sender::room_bytes(std::uint64_t wanted_bytes) {
  const auto room = [this] { return staging_bytes_ - (staged_bytes_ - freed_bytes_); };
  if (room() < wanted_bytes) {
    freed_bytes_ = direction_.freed_bytes.load(std::memory_order_acquire);
  }
  return room();
}

// Appends to the staging area.
void Sender::copy_in(const std::byte* source, std::uint32_t bytes) {
  while (bytes != 0) {
    const auto begin = static_cast<std::uint32_t>(staged_bytes_ % staging_bytes_);
    const bool is_probe = begin < kProbeBytes;
    const std::uint32_t end = is_probe ? kProbeBytes : staging_bytes_;
    const std::uint32_t size = std::min(bytes, end - begin);
    std::byte* const target = direction_.staging() + begin;
    if (is_probe) {
      distance_.copy(target, source, size);
    } else if (distance_.is_far() && size >= kPastCachesBytes) {
      copy_past_caches(target, source, size);
    } else {
      std::memcpy(target, source, size);
    }
    staged_bytes_ += size;
    source += size;
    bytes -= size;
  }
}

// Copies the next pieces of what waits, in order.
bool Sender::stage() {
  std::uint32_t copied_bytes = 0;
  while (!is_staged_up() && copied_bytes < kStageBudgetBytes) {
    const Outstanding& slice = outstanding_[staging_ % kEntryCount];
    if (slice.source == nullptr) {
      ++staging_;
      continue;
    }
    const std::uint32_t slice_bytes = direction_.entry(staging_).header.bytes;
    // Not cut to the budget: every piece but the last of a slice must be whole lines.
    const std::uint32_t wanted = std::min(slice_bytes - staged_of_slice_bytes_, kPieceBytes);
    if (room_bytes(wanted) < wanted) break;
    copy_in(slice.source + staged_of_slice_bytes_, wanted);
    copied_bytes += wanted;
    staged_of_slice_bytes_ += wanted;
    if (staged_of_slice_bytes_ == slice_bytes) {
      staged_bytes_ = round_up_to_line(staged_bytes_);
      staged_of_slice_bytes_ = 0;
      ++staging_;
    }
    direction_.staged_bytes.store(staged_bytes_);
    ringer_->wake_for(kArrivals);
  }
  return copied_bytes != 0;
}

bool Sender::progress(Endpoint& self, Sink& sink, Look look) {
  if (posted_ == reported_) return false;
  const bool has_staged = !is_staged_up() && stage();
  if (referred_count_ != 0 || was_busy_ || posted_ - reported_ > kEntryCount / 2) look = Look::kFar;
  was_busy_ = false;
  if (look == Look::kFar && !has_acknowledged()) {
    crossing_.acknowledged = direction_.taken.load(std::memory_order_acquire);
  }
  if (look == Look::kNot || !has_acknowledged()) return has_staged;
  report_acknowledged(self, sink);
  return true;
}

void Sender::report_acknowledged(Endpoint& self, Sink& sink) {
  while (has_acknowledged()) {
    Outstanding& slot = outstanding_[reported_ % kEntryCount];
    const bool is_slice = slot.is_slice;
    const std::uint64_t cookie = slot.cookie;
    const bool was_stalled = direction_.entry(reported_).was_stalled;
    if (!slot.is_buffered) --referred_count_;
    slot.block.reset();
    slot.source = nullptr;
    ++reported_;  // before the call, which may post again
    if (is_slice) sink.on_acknowledged(self, {.cookie = cookie, .was_stalled = was_stalled});
  }
}

bool Sender::has_news() const {
  if (posted_ == reported_) return false;
  if (has_acknowledged() || direction_.taken.load() != reported_) return true;
  if (is_staged_up()) return false;
  const std::uint64_t backlog_bytes = staged_bytes_ - direction_.freed_bytes.load();
  return backlog_bytes <= staging_bytes_ / 2;
}

std::uint32_t Sender::sleeps_for(bool is_expecting) const {
  if (posted_ == reported_) return 0;
  const bool must_know = referred_count_ != 0 || was_busy_ || !is_expecting;
  return (must_know ? kAcknowledgements : 0U) | (is_staged_up() ? 0U : kRoom);
}

void Sender::stop() {
  outstanding_.assign(kEntryCount, Outstanding());
  reported_ = staging_ = crossing_.acknowledged = posted_;
  referred_count_ = 0;
}

}  // namespace polyrail::shm
