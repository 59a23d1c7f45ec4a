#include "src/bootstrap/wire.hpp"

#include <poll.h>

#include <array>

namespace polyrail::bootstrap {

Status Wire::send() {
  while (!output_.empty()) {
    const std::string& front = *output_.front();
    const Moved moved = send_some(descriptor_, std::string_view(front).substr(sent_bytes_));
    if (moved.error != 0) {
      output_.clear();
      sent_bytes_ = 0;
      return {StatusCode::kRemoteError, system_text(moved.error)};
    }
    if (moved.bytes == 0) return ok();
    sent_bytes_ += moved.bytes;
    if (sent_bytes_ == front.size()) {
      output_.pop_front();
      sent_bytes_ = 0;
    }
  }
  return ok();
}

Status Wire::receive() {
  std::array<char, 64 << 10> bytes;
  while (true) {
    const Moved moved = receive_some(descriptor_, bytes.data(), bytes.size());
    if (moved.error != 0) return {StatusCode::kRemoteError, system_text(moved.error)};
    if (moved.has_ended) return {StatusCode::kRemoteError, "it closed its connection"};
    if (moved.bytes == 0) return ok();
    if (Status status = reader_.feed({bytes.data(), moved.bytes}); !status.is_ok()) return status;
    // A full buffer may have more behind it; otherwise another call would only say so.
    if (moved.bytes < bytes.size()) return ok();
  }
}

short Wire::events() const {
  return has_output() ? POLLIN | POLLOUT : POLLIN;
}

}  // namespace polyrail::bootstrap
