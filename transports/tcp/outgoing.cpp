#include "transports/tcp/outgoing.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "src/base/assert.hpp"

namespace polyrail::tcp {
namespace {

// Frames gathered for one system call stop at about this size.
constexpr std::size_t kGatherBytes = 1024 * 1024;
constexpr std::size_t kRetainAlignment = 64;

}  // namespace

OutgoingFrames::OutgoingFrames(int fd)
    : fd_(fd), retained_(std::make_unique_for_overwrite<std::byte[]>(kRetainedBytes)) {}

Posted OutgoingFrames::put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie,
                           std::uint32_t sequence) {
  const bool is_buffered = header.bytes <= kBufferedBytes;
  if (!is_buffered && is_blocked_ && end_ - writing_ >= kMostWaiting) return Posted::kBusy;
  const std::size_t head_bytes = kSliceHeadBytes + (is_buffered ? header.bytes : 0);
  std::byte* head = retain(head_bytes);
  if (head == nullptr) return Posted::kBusy;
  std::memcpy(head + kPrefixBytes, &header, sizeof(header));
  if (is_buffered && header.bytes != 0) {
    std::memcpy(head + kSliceHeadBytes, source, header.bytes);
  }
  ++posted_count_;
  commit({.head = head,
          .head_bytes = static_cast<std::uint32_t>(head_bytes),
          .source_bytes = is_buffered ? 0 : header.bytes,
          .source = is_buffered ? nullptr : source,
          .cookie = cookie,
          .retained_end = retained_end_,
          .is_slice = true},
         {.kind = FrameKind::kSlice, .sequence = sequence, .bytes = header.bytes});
  return is_buffered ? Posted::kBuffered : Posted::kPosted;
}

Posted OutgoingFrames::send_control(std::span<const std::byte> message, std::uint32_t sequence) {
  PR_ASSERT(message.size() <= Endpoint::kMaxControlBytes);
  std::byte* head = retain(kPrefixBytes + message.size());
  if (head == nullptr) return Posted::kBusy;
  if (!message.empty()) std::memcpy(head + kPrefixBytes, message.data(), message.size());
  commit({.head = head,
          .head_bytes = static_cast<std::uint32_t>(kPrefixBytes + message.size()),
          .retained_end = retained_end_},
         {.kind = FrameKind::kControl,
          .sequence = sequence,
          .bytes = static_cast<std::uint32_t>(message.size())});
  return Posted::kBuffered;
}

std::byte* OutgoingFrames::retain(std::size_t bytes) {
  if (end_ - done_ == kFrameCount) return nullptr;
  const std::size_t size = (bytes + kRetainAlignment - 1) / kRetainAlignment * kRetainAlignment;
  if (done_ == end_) retained_begin_ = retained_end_ = 0;  // start over: stay in few cache lines
  std::uint64_t begin = retained_end_;
  const std::size_t to_wrap = kRetainedBytes - begin % kRetainedBytes;
  if (size > to_wrap) begin += to_wrap;  // a head is never cut in two
  if (begin + size - retained_begin_ > kRetainedBytes) return nullptr;
  retained_end_ = begin + size;
  return retained_.get() + begin % kRetainedBytes;
}

void OutgoingFrames::commit(Frame frame_, const FramePrefix& prefix) {
  std::memcpy(frame_.head, &prefix, sizeof(prefix));
  load_bytes_ += frame_.head_bytes + frame_.source_bytes;
  frame(end_++) = frame_;
  if (!is_blocked_) write();
}

void OutgoingFrames::note_taken(std::uint32_t bytes, bool was_stalled, std::uint32_t ahead_bytes) {
  ++taken_count_;
  lazy_bytes_ += bytes;
  if (bytes > kBufferedBytes) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    taken_us_ = static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now).count());
    arrived_ahead_bytes_ = ahead_bytes;
  }
  is_stall_due_ |= was_stalled;
  // Nobody waits for the acknowledgement of a slice that was copied, so the next frame carries it.
  is_ack_due_ |= bytes > kBufferedBytes || taken_count_ - announced_count_ >= kLazyAckCount ||
                 lazy_bytes_ >= kRetainedBytes / 2;
}

void OutgoingFrames::settle_acknowledgements() {
  if (is_ack_due_ && !is_blocked_) flush_acknowledgements();
}

void OutgoingFrames::flush_acknowledgements() {
  if (!owes_acknowledgement()) return;
  is_ack_due_ = true;
  if (!is_blocked_) write();
}

void OutgoingFrames::on_writable() {
  is_blocked_ = false;
  write();
}

void OutgoingFrames::write() {
  while (error_number_ == 0) {
    Batch batch = gather();
    if (batch.span_count == 0) return;
    ssize_t sent;
    if (batch.span_count == 1) {
      sent = send(fd_, batch.spans[0].iov_base, batch.spans[0].iov_len, MSG_NOSIGNAL);
    } else {
      msghdr message{};
      message.msg_iov = batch.spans.data();
      message.msg_iovlen = batch.span_count;
      sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
    }
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        is_blocked_ = true;
      } else {
        error_number_ = errno;
      }
      return;
    }
    consume(static_cast<std::size_t>(sent));
    if (static_cast<std::size_t>(sent) < batch.bytes) {
      // The socket is full; an event will tell when it has room.
      is_blocked_ = true;
      return;
    }
  }
}

void OutgoingFrames::Batch::add(const std::byte* data, std::size_t size) {
  spans[span_count++] = {const_cast<std::byte*>(data), size};
  bytes += size;
}

OutgoingFrames::Batch OutgoingFrames::gather() {
  Batch batch;
  if (ack_left_bytes_ == 0 && is_ack_due_ && writing_ == end_) make_ack_frame();
  // An acknowledgement was begun when nothing else was under way, so it goes first.
  if (ack_left_bytes_ != 0) {
    batch.add(ack_frame_.data() + kPrefixBytes - ack_left_bytes_, ack_left_bytes_);
  }
  for (std::uint64_t i = writing_;
       i != end_ && batch.span_count + 2 <= kSpanCount && batch.bytes < kGatherBytes; ++i) {
    Frame& next = frame(i);
    if (i == stamped_) stamp(next);
    std::size_t skip = i == writing_ ? written_bytes_ : 0;
    if (skip < next.head_bytes) {
      batch.add(next.head + skip, next.head_bytes - skip);
      skip = 0;
    } else {
      skip -= next.head_bytes;
    }
    if (next.source_bytes > skip) batch.add(next.source + skip, next.source_bytes - skip);
  }
  return batch;
}

void OutgoingFrames::consume(std::size_t bytes) {
  const std::size_t of_ack = std::min(bytes, ack_left_bytes_);
  ack_left_bytes_ -= of_ack;
  bytes -= of_ack;
  while (bytes != 0) {
    const Frame& front = frame(writing_);
    const std::size_t left = front.head_bytes + front.source_bytes - written_bytes_;
    if (bytes < left) {
      written_bytes_ += bytes;
      return;
    }
    bytes -= left;
    written_bytes_ = 0;
    if (front.is_slice) ++written_count_;
    ++writing_;
  }
  release_written_controls();
}

void OutgoingFrames::release_oldest() {
  const Frame& oldest = frame(done_);
  retained_begin_ = oldest.retained_end;
  load_bytes_ -= oldest.head_bytes + oldest.source_bytes;
  ++done_;
}

void OutgoingFrames::release_written_controls() {
  while (done_ != writing_ && !frame(done_).is_slice) release_oldest();
}

void OutgoingFrames::stamp(Frame& next) {
  ++stamped_;
  stamp_prefix(next.head, next.is_slice ? kSliceHeadBytes : kPrefixBytes);
}

void OutgoingFrames::make_ack_frame() {
  FramePrefix prefix{.kind = FrameKind::kAck};
  std::memcpy(ack_frame_.data(), &prefix, sizeof(prefix));
  stamp_prefix(ack_frame_.data(), kPrefixBytes);
  ack_left_bytes_ = kPrefixBytes;
}

void OutgoingFrames::stamp_prefix(std::byte* head, std::size_t checked_bytes) {
  FramePrefix prefix;
  std::memcpy(&prefix, head, sizeof(prefix));
  prefix.taken_count = announced_count_ = taken_count_;
  prefix.taken_us = taken_us_;
  prefix.ahead_bytes = arrived_ahead_bytes_;
  prefix.flags = is_stall_due_ ? kStalledFlag : 0;
  is_stall_due_ = is_ack_due_ = false;
  lazy_bytes_ = 0;
  std::memcpy(head, &prefix, sizeof(prefix));
  prefix.check = frame_check(head, checked_bytes);
  std::memcpy(head, &prefix, sizeof(prefix));
}

std::uint64_t OutgoingFrames::unwritten_bytes() const {
  std::uint64_t bytes = ack_left_bytes_;
  for (std::uint64_t i = writing_; i != end_; ++i) {
    const Frame& unwritten = frames_[i % kFrameCount];
    bytes += unwritten.head_bytes + unwritten.source_bytes;
  }
  return bytes - written_bytes_;
}

bool OutgoingFrames::accept_acknowledgement(const FramePrefix& prefix) {
  const std::uint32_t fresh = prefix.taken_count - static_cast<std::uint32_t>(acknowledged_to_);
  if (fresh > written_count_ - acknowledged_to_) return false;
  acknowledged_to_ += fresh;
  landed_us_ += static_cast<std::int32_t>(prefix.taken_us - static_cast<std::uint32_t>(landed_us_));
  ahead_bytes_ = prefix.ahead_bytes;
  if ((prefix.flags & kStalledFlag) != 0) stalled_to_ = posted_count_;
  return true;
}

std::optional<Acknowledgement> OutgoingFrames::next_acknowledged() {
  if (acknowledged_count_ == acknowledged_to_) return std::nullopt;
  // Written controls are released at once, so the oldest frame is a slice.
  const Acknowledgement result{.cookie = frame(done_).cookie,
                               .was_stalled = acknowledged_count_ < stalled_to_,
                               .landed_us = static_cast<double>(landed_us_),
                               .ahead_bytes = ahead_bytes_};
  release_oldest();
  ++acknowledged_count_;
  release_written_controls();
  return result;
}

}  // namespace polyrail::tcp
