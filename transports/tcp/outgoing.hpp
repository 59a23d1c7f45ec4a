// OutgoingFrames: the sending half of one socket. Frames wait in a ring until the socket takes
// them, slices stay in it until the peer has acknowledged them.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "transports/tcp/wire.hpp"
#include "transports/transport.hpp"

namespace polyrail::tcp {

class OutgoingFrames {
 public:
  // Slices that may be unacknowledged, and frames that may be unwritten.
  static constexpr std::size_t kFrameCount = 64;
  // For heads, copied payloads and control messages of the frames in the ring.
  static constexpr std::size_t kRetainedBytes = 128 * 1024;
  // So many small slices are taken in before they are acknowledged by a frame of their own.
  static constexpr std::uint32_t kLazyAckCount = 8;

  // `fd` is a non-blocking socket that lives as long as this.
  explicit OutgoingFrames(int fd);

  // Queue a frame and, if the socket is free, write it. `sequence` is spent unless the answer is
  // kBusy.
  Posted put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie,
             std::uint32_t sequence);
  Posted send_control(std::span<const std::byte> message, std::uint32_t sequence);

  // The receiving half has taken in a slice; the next frame says so.
  void note_taken(std::uint32_t bytes, bool was_stalled, std::uint32_t ahead_bytes);
  // Acknowledges by a frame of its own what cannot wait for one that goes that way anyhow.
  void settle_acknowledgements();
  // The same for all that has been taken in, before a pause.
  void flush_acknowledgements();
  bool owes_acknowledgement() const { return announced_count_ != taken_count_; }

  // Writes until everything is written or the socket is full.
  void write();
  // The socket can take bytes again.
  void on_writable();
  bool has_unwritten() const { return writing_ != end_ || ack_left_bytes_ != 0; }
  std::uint64_t unwritten_bytes() const;
  // Bytes of the frames in the ring: what still has to reach the peer.
  std::uint64_t load_bytes() const { return load_bytes_; }
  // errno of a failed write; 0: none. After a failure nothing more is written.
  int error_number() const { return error_number_; }

  // Takes what a prefix acknowledges. False: the peer acknowledges what it was never sent.
  bool accept_acknowledgement(const FramePrefix& prefix);
  // The next slice that has been acknowledged, if any: call until there is none.
  std::optional<Acknowledgement> next_acknowledged();

 private:
  struct Frame {
    std::byte* head = nullptr;  // in retained_: prefix, header, and what was copied
    std::uint32_t head_bytes = 0;
    std::uint32_t source_bytes = 0;
    const std::byte* source = nullptr;  // the payload, if it was not copied
    std::uint64_t cookie = 0;
    std::uint64_t retained_end = 0;  // all that was retained up to this frame
    bool is_slice = false;
  };
  static constexpr std::size_t kSpanCount = 16;  // per system call
  // Frames that wait for a full socket, beyond which large slices are refused: what waits here
  // could still go over another rail.
  static constexpr std::size_t kMostWaiting = 3;

  Frame& frame(std::uint64_t index) { return frames_[index % kFrameCount]; }
  // Room for a frame's head, or null.
  std::byte* retain(std::size_t bytes);
  void commit(Frame frame, const FramePrefix& prefix);
  void stamp(Frame& frame);
  void stamp_prefix(std::byte* head, std::size_t checked_bytes);
  void make_ack_frame();
  struct Batch {
    std::array<iovec, kSpanCount> spans;
    std::size_t span_count = 0;
    std::size_t bytes = 0;
    void add(const std::byte* data, std::size_t size);
  };
  Batch gather();
  void consume(std::size_t bytes);
  void release_oldest();
  void release_written_controls();

  int fd_;
  bool is_blocked_ = false;
  int error_number_ = 0;

  // Frames by index: [done_, writing_) are written, [writing_, stamped_) have their final prefix.
  std::array<Frame, kFrameCount> frames_{};
  std::uint64_t done_ = 0;
  std::uint64_t writing_ = 0;
  std::uint64_t stamped_ = 0;
  std::uint64_t end_ = 0;
  std::size_t written_bytes_ = 0;  // of the frame writing_
  std::uint64_t load_bytes_ = 0;

  std::unique_ptr<std::byte[]> retained_;
  std::uint64_t retained_begin_ = 0;
  std::uint64_t retained_end_ = 0;

  // Slices of ours, counted from the first.
  std::uint64_t posted_count_ = 0;
  std::uint64_t written_count_ = 0;                 // completely written
  std::uint64_t acknowledged_count_ = 0;            // told to the sink
  std::uint64_t acknowledged_to_ = 0;               // known to be taken in by the peer
  std::uint64_t stalled_to_ = 0;                    // slices below this were posted behind a stall
  std::int64_t landed_us_ = std::int64_t{1} << 32;  // the peer's clock, beyond its 32 bits
  std::uint32_t ahead_bytes_ = 0;                   // at the peer then

  // Slices of the peer.
  std::uint32_t taken_count_ = 0;
  std::uint32_t taken_us_ = 0;
  std::uint32_t arrived_ahead_bytes_ = 0;
  std::uint32_t announced_count_ = 0;
  std::uint32_t lazy_bytes_ = 0;  // taken in since the last announcement
  bool is_ack_due_ = false;
  bool is_stall_due_ = false;
  alignas(8) std::array<std::byte, kPrefixBytes> ack_frame_{};
  std::size_t ack_left_bytes_ = 0;
};

}  // namespace polyrail::tcp
