#include "transports/tcp/incoming.hpp"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/sockios.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "src/base/assert.hpp"

namespace polyrail::tcp {
namespace {

constexpr std::size_t kStagingBytes = 16 * 1024;
static_assert(kStagingBytes >= 2 * (kSliceHeadBytes + kBufferedBytes) - kBufferedBytes);
static_assert(kStagingBytes > kPrefixBytes + Endpoint::kMaxControlBytes);
// What is read behind a large payload: enough for the next head, little to be copied twice.
constexpr std::size_t kTailBytes = 1024;
// System calls per visit, so that one busy peer does not keep others waiting.
constexpr int kFetchesPerVisit = 8;

}  // namespace

IncomingFrames::IncomingFrames(int fd, Endpoint& endpoint, FrameOrder& order,
                               OutgoingFrames& outgoing)
    : fd_(fd),
      endpoint_(endpoint),
      order_(order),
      outgoing_(outgoing),
      staging_(std::make_unique_for_overwrite<std::byte[]>(kStagingBytes)) {}

void IncomingFrames::on_readable(bool has_ended) {
  is_readable_ = true;
  has_ended_ |= has_ended;
}

bool IncomingFrames::read(Sink& sink) {
  bool has_moved = false;
  for (int i = 0; i < kFetchesPerVisit; ++i) {
    has_moved |= parse(sink);
    if (!failure_.is_ok() || is_waiting() || is_at_end_) return has_moved;
    // The first look is free of what is believed: the caller has its reasons.
    if ((i != 0 && !is_readable_) || !fetch()) return has_moved;
    has_moved = true;
  }
  return parse(sink) || has_moved;
}

bool IncomingFrames::parse(Sink& sink) {
  bool has_moved = false;
  while (failure_.is_ok()) {
    switch (state_) {
      case State::kHead:
        if (!parse_head(sink)) return has_moved;
        break;
      case State::kAwaitsTurn:
      case State::kStalled:
        if (!offer(sink)) return has_moved;
        break;
      case State::kPayload:
        take_staged_payload();
        if (left_bytes_ != 0) return has_moved;
        finish_slice(sink);
        break;
    }
    has_moved = true;
  }
  return true;
}

bool IncomingFrames::parse_head(Sink& sink) {
  if (staged_bytes() < kPrefixBytes) return false;
  const std::byte* head = staging_.get() + staged_begin_;
  std::memcpy(&prefix_, head, kPrefixBytes);
  const bool is_slice = prefix_.kind == FrameKind::kSlice;
  const std::size_t head_bytes = is_slice ? kSliceHeadBytes : kPrefixBytes;
  if (staged_bytes() < head_bytes) return false;
  if (frame_check(head, head_bytes) != prefix_.check) {
    fail({StatusCode::kRemoteError, "a frame has a wrong check sum: the stream is corrupted"});
    return true;
  }
  if (is_slice) std::memcpy(&header_, head + kPrefixBytes, sizeof(header_));
  if (!is_sound()) {
    fail({StatusCode::kRemoteError,
          "a frame of kind " + std::to_string(static_cast<int>(prefix_.kind)) + " says it has " +
              std::to_string(prefix_.bytes) + " bytes: the stream is corrupted"});
    return true;
  }
  // A control message is handled when all of it is staged.
  if (prefix_.kind == FrameKind::kControl && staged_bytes() < head_bytes + prefix_.bytes) {
    return false;
  }
  if (!is_in_order()) {
    fail({StatusCode::kRemoteError, "a frame is missing or came twice: the stream is corrupted"});
    return true;
  }
  if (!accept_acknowledgement(sink)) return true;
  staged_begin_ += head_bytes;
  was_stalled_ = false;
  if (prefix_.kind != FrameKind::kAck) state_ = State::kAwaitsTurn;
  return true;
}

bool IncomingFrames::is_sound() const {
  switch (prefix_.kind) {
    case FrameKind::kSlice:
      return prefix_.bytes == header_.bytes;
    case FrameKind::kControl:
      return prefix_.bytes <= Endpoint::kMaxControlBytes;
    case FrameKind::kAck:
      return prefix_.bytes == 0;
  }
  return false;
}

bool IncomingFrames::is_in_order() const {
  if (prefix_.kind == FrameKind::kAck) return true;
  const std::uint32_t ahead = prefix_.sequence - order_.next_sequence;
  // On several sockets one may run ahead of the others, but none brings what has been.
  return order_.socket_count == 1 ? ahead == 0 : ahead < (std::uint32_t{1} << 31);
}

bool IncomingFrames::accept_acknowledgement(Sink& sink) {
  if (!outgoing_.accept_acknowledgement(prefix_)) {
    fail({StatusCode::kRemoteError, "the peer acknowledges slices that it was not sent"});
    return false;
  }
  while (const auto done = outgoing_.next_acknowledged()) sink.on_acknowledged(endpoint_, *done);
  return true;
}

bool IncomingFrames::offer(Sink& sink) {
  if (prefix_.sequence != order_.next_sequence) {
    was_stalled_ |= order_.is_stalled;
    return false;
  }
  return prefix_.kind == FrameKind::kControl ? offer_control(sink) : offer_slice(sink);
}

bool IncomingFrames::offer_control(Sink& sink) {
  // What was sent before it on other sockets must have landed completely.
  if (order_.landing_count != 0) return false;
  const std::span message(staging_.get() + staged_begin_, prefix_.bytes);
  staged_begin_ += prefix_.bytes;
  ++order_.next_sequence;
  state_ = State::kHead;
  sink.on_control(endpoint_, message);
  return true;
}

bool IncomingFrames::offer_slice(Sink& sink) {
  const Landing landing = sink.on_slice(endpoint_, header_);
  if (landing.how == Landing::How::kLater) {
    if (state_ != State::kStalled) {
      // What was taken in before it is no part of the stall.
      outgoing_.settle_acknowledgements();
      state_ = State::kStalled;
      order_.is_stalled = was_stalled_ = true;
    }
    return false;
  }
  PR_ASSERT(landing.how != Landing::How::kStream);
  order_.is_stalled = false;
  is_discarded_ = landing.how == Landing::How::kDiscard;
  target_ = landing.target;
  left_bytes_ = header_.bytes;
  ++order_.next_sequence;
  ++order_.landing_count;
  state_ = State::kPayload;
  return true;
}

void IncomingFrames::take_staged_payload() {
  const std::size_t bytes = std::min<std::size_t>(left_bytes_, staged_bytes());
  if (bytes == 0) return;
  if (!is_discarded_) {
    std::memcpy(target_, staging_.get() + staged_begin_, bytes);
    target_ += bytes;
  }
  staged_begin_ += bytes;
  left_bytes_ -= static_cast<std::uint32_t>(bytes);
}

void IncomingFrames::finish_slice(Sink& sink) {
  state_ = State::kHead;
  --order_.landing_count;
  // Before the sink hears of it: what it sends in answer carries the acknowledgement.
  outgoing_.note_taken(header_.bytes, was_stalled_, ahead_bytes());
  if (!is_discarded_) sink.on_landed(endpoint_, header_);
}

std::uint32_t IncomingFrames::ahead_bytes() const {
  // On several sockets nobody could tell what they have together.
  if (header_.bytes <= kBufferedBytes || order_.socket_count != 1) return 0;
  int waiting_bytes = 0;
  if (is_readable_ && ioctl(fd_, SIOCINQ, &waiting_bytes) != 0) waiting_bytes = 0;
  return static_cast<std::uint32_t>(staged_bytes()) + static_cast<std::uint32_t>(waiting_bytes);
}

void IncomingFrames::discard(std::uint32_t operation) {
  if (state_ == State::kPayload && header_.operation == operation) is_discarded_ = true;
}

bool IncomingFrames::fetch() {
  if (staged_begin_ != 0) {
    // At most a cut head or control message is left.
    std::memmove(staging_.get(), staging_.get() + staged_begin_, staged_bytes());
    staged_end_ -= staged_begin_;
    staged_begin_ = 0;
  }
  if (state_ != State::kPayload) {
    const std::size_t asked = kStagingBytes - staged_end_;
    const ssize_t got = recv(fd_, staging_.get() + staged_end_, asked, 0);
    if (!fetched(got, asked)) return false;
    staged_end_ += static_cast<std::size_t>(got);
    return true;
  }
  if (is_discarded_) {
    // The kernel drops the bytes without copying them. Called past the C library, since sanitizers
    // take recv() to write all that it returns.
    const ssize_t got = ::syscall(SYS_recvfrom, fd_, nullptr, static_cast<std::size_t>(left_bytes_),
                                  MSG_TRUNC, nullptr, nullptr);
    if (!fetched(got, left_bytes_)) return false;
    left_bytes_ -= static_cast<std::uint32_t>(got);
    return true;
  }
  iovec spans[] = {{target_, left_bytes_}, {staging_.get(), kTailBytes}};
  const ssize_t got = readv(fd_, spans, std::size(spans));
  if (!fetched(got, left_bytes_ + kTailBytes)) return false;
  const std::size_t landed = std::min<std::size_t>(left_bytes_, static_cast<std::size_t>(got));
  target_ += landed;
  left_bytes_ -= static_cast<std::uint32_t>(landed);
  staged_end_ = static_cast<std::size_t>(got) - landed;
  return true;
}

bool IncomingFrames::fetched(ssize_t got, std::size_t asked) {
  if (got > 0) {
    // Fewer bytes than asked for: the socket is empty, the next bytes make a new event.
    is_readable_ = static_cast<std::size_t>(got) == asked || has_ended_;
    if (!is_readable_) {
      was_just_emptied_ = state_ == State::kPayload;
    }
    return true;
  }
  if (got == 0) {
    is_readable_ = false;
    is_at_end_ = state_ == State::kHead && staged_bytes() == 0;
    if (!is_at_end_) {
      fail({StatusCode::kRemoteError, "the peer closed the socket in the middle of a frame"});
    }
  } else if (errno == EAGAIN) {
    is_readable_ = false;
  } else if (errno != EINTR) {
    fail({StatusCode::kRemoteError, std::string("receive: ") + std::strerror(errno)});
  }
  return false;
}

void IncomingFrames::fail(Status status) {
  is_readable_ = false;
  failure_ = std::move(status);
}

}  // namespace polyrail::tcp
