// Fuzzes what ranks read from each other after the handshake. The first byte is the size of the
// pieces in which the rest arrives.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/bootstrap/frame.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace bootstrap = polyrail::bootstrap;
  if (size == 0) return 0;
  constexpr int kRankCount = 3;
  std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  bootstrap::FrameReader reader(kRankCount);
  while (!stream.empty()) {
    const std::string_view piece = stream.substr(0, std::size_t{1} + data[0]);
    stream.remove_prefix(piece.size());
    if (!reader.feed(piece).is_ok()) break;
  }
  while (reader.has_frame()) {
    const bootstrap::Frame frame = reader.take();
    if (bootstrap::decode_failure(frame.payload).is_ok()) std::abort();
    if (const auto parts = bootstrap::decode_gathered(frame.payload, kRankCount); parts.is_ok()) {
      if (bootstrap::encode_gathered(parts.value()) != frame.payload) std::abort();
    }
    bootstrap::FrameReader again(kRankCount);
    if (!again.feed(bootstrap::encode(frame)).is_ok() || again.take() != frame) std::abort();
  }
  return 0;
}
