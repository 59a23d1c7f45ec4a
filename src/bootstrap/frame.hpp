// Frame: what travels on a connection after the handshake, and the parser of what arrives.
//
// Bytes, integers little-endian: kind (u8), phase bytes (u8), zero (u16), remaining_ms (u32),
// payload bytes (u64), then the phase and the payload.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <polyrail/status.hpp>

namespace polyrail::bootstrap {

enum class FrameKind : std::uint8_t {
  kAccepted = 1,  // root: you are one of us; wait for the others
  kWelcome = 2,   // root: all ranks are there
  kFailure = 3,   // either: start-up has failed; the payload is the status
  kMessage = 4,   // member: its part of the all_gather for `phase`
  kGathered = 5,  // root: the parts of all ranks
};

struct Frame {
  FrameKind kind = FrameKind::kAccepted;
  std::uint32_t remaining_ms = 0;  // until the sender's deadline
  std::string phase;
  std::string payload;
  friend bool operator==(const Frame&, const Frame&) = default;
};

std::string encode(const Frame& frame);
std::string encode_failure(const Status& status);
// Any payload gives a failure; an odd one gives kInternalError.
Status decode_failure(std::string_view payload);
// The payload of kGathered.
std::string encode_gathered(const std::vector<std::string>& messages);
Result<std::vector<std::string>> decode_gathered(std::string_view payload, int rank_count);

// Cuts a stream of bytes, in pieces of any size, into frames. Memory grows with the bytes that
// really come, not with the lengths they announce.
class FrameReader {
 public:
  // rank_count bounds what a frame may hold.
  explicit FrameReader(int rank_count) : rank_count_(rank_count) {}
  // After a failure the stream is useless: it fails again.
  Status feed(std::string_view bytes);
  bool has_frame() const { return !frames_.empty(); }
  Frame take();

 private:
  Status feed_good(std::string_view bytes);
  Status read_header();
  void finish_frame();

  int rank_count_;
  std::string header_;
  bool has_header_ = false;
  std::size_t phase_bytes_ = 0;
  std::uint64_t payload_bytes_ = 0;
  Frame frame_;  // the one that is coming
  std::deque<Frame> frames_;
  Status failure_;
};

}  // namespace polyrail::bootstrap
