#include "src/bootstrap/frame.hpp"

#include <algorithm>

#include "src/base/assert.hpp"
#include "src/bootstrap/bytes.hpp"
#include "src/bootstrap/wording.hpp"

namespace polyrail::bootstrap {
namespace {

constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kMaxFailureBytes = 64 << 10;

Status broken(const std::string& what) {
  return {StatusCode::kInternalError, "start-up message: " + what};
}

std::uint64_t max_payload_bytes(FrameKind kind, int rank_count) {
  switch (kind) {
    case FrameKind::kAccepted:
    case FrameKind::kWelcome:
      return 0;
    case FrameKind::kFailure:
      return kMaxFailureBytes;
    case FrameKind::kMessage:
      return kMaxMessageBytes;
    case FrameKind::kGathered:
      return (kMaxMessageBytes + 8) * static_cast<std::uint64_t>(rank_count);
  }
  return 0;
}

bool is_failure_code(std::uint8_t code) {
  return code >= static_cast<std::uint8_t>(StatusCode::kSystemError) &&
         code <= static_cast<std::uint8_t>(StatusCode::kAborted) &&
         code != static_cast<std::uint8_t>(StatusCode::kInProgress);
}

}  // namespace

std::string encode(const Frame& frame) {
  PR_ASSERT(frame.phase.size() <= kMaxPhaseBytes);
  ByteWriter writer;
  writer.u8(static_cast<std::uint8_t>(frame.kind));
  writer.u8(static_cast<std::uint8_t>(frame.phase.size()));
  writer.u16(0);
  writer.u32(frame.remaining_ms);
  writer.u64(frame.payload.size());
  writer.bytes(frame.phase);
  writer.bytes(frame.payload);
  return std::move(writer).take();
}

std::string encode_failure(const Status& status) {
  PR_ASSERT(!status.is_ok());
  Frame frame;
  frame.kind = FrameKind::kFailure;
  frame.payload = static_cast<char>(status.code());
  frame.payload += status.message().substr(0, kMaxFailureBytes - 1);
  return encode(frame);
}

Status decode_failure(std::string_view payload) {
  ByteReader reader(payload);
  const std::uint8_t code = reader.u8();
  if (reader.is_short() || !is_failure_code(code)) return broken("a failure without a cause");
  return {static_cast<StatusCode>(code), std::string(reader.bytes(reader.left()))};
}

std::string encode_gathered(const std::vector<std::string>& messages) {
  ByteWriter writer;
  for (const std::string& message : messages) writer.u64(message.size());
  for (const std::string& message : messages) writer.bytes(message);
  return std::move(writer).take();
}

Result<std::vector<std::string>> decode_gathered(std::string_view payload, int rank_count) {
  ByteReader lengths(payload.substr(0, 8 * static_cast<std::size_t>(rank_count)));
  ByteReader bytes(payload);
  bytes.bytes(8 * static_cast<std::size_t>(rank_count));
  std::vector<std::string> messages;
  for (int rank = 0; rank < rank_count && !bytes.is_short(); ++rank) {
    messages.emplace_back(bytes.bytes(lengths.u64()));
  }
  if (bytes.is_short() || bytes.left() != 0) {
    return broken("the lengths of the ranks' parts do not add up");
  }
  return messages;
}

Status FrameReader::feed(std::string_view bytes) {
  if (failure_.is_ok()) failure_ = feed_good(bytes);
  return failure_;
}

Status FrameReader::feed_good(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!has_header_) {
      const std::size_t part = std::min(kHeaderBytes - header_.size(), bytes.size());
      header_ += bytes.substr(0, part);
      bytes.remove_prefix(part);
      if (header_.size() < kHeaderBytes) return ok();
      if (Status status = read_header(); !status.is_ok()) return status;
    }
    const std::size_t phase_part = std::min(phase_bytes_ - frame_.phase.size(), bytes.size());
    frame_.phase += bytes.substr(0, phase_part);
    bytes.remove_prefix(phase_part);
    const std::size_t part =
        std::min<std::uint64_t>(payload_bytes_ - frame_.payload.size(), bytes.size());
    frame_.payload += bytes.substr(0, part);
    bytes.remove_prefix(part);
    if (frame_.phase.size() == phase_bytes_ && frame_.payload.size() == payload_bytes_) {
      finish_frame();
    }
  }
  return ok();
}

Frame FrameReader::take() {
  PR_ASSERT(has_frame());
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

Status FrameReader::read_header() {
  ByteReader reader(header_);
  const std::uint8_t kind = reader.u8();
  phase_bytes_ = reader.u8();
  const std::uint16_t zero = reader.u16();
  frame_.remaining_ms = reader.u32();
  payload_bytes_ = reader.u64();
  header_.clear();
  has_header_ = true;
  if (kind < static_cast<std::uint8_t>(FrameKind::kAccepted) ||
      kind > static_cast<std::uint8_t>(FrameKind::kGathered) || zero != 0) {
    return broken("unknown kind " + std::to_string(kind));
  }
  frame_.kind = static_cast<FrameKind>(kind);
  if (phase_bytes_ > kMaxPhaseBytes) return broken("the name of its phase is too long");
  if (const std::uint64_t most = max_payload_bytes(frame_.kind, rank_count_);
      payload_bytes_ > most) {
    return broken("it announces " + std::to_string(payload_bytes_) + " bytes; at most " +
                  std::to_string(most) + " are allowed");
  }
  return ok();
}

void FrameReader::finish_frame() {
  frames_.push_back(std::move(frame_));
  frame_ = Frame();
  has_header_ = false;
}

}  // namespace polyrail::bootstrap
