// Wire: one authenticated connection that carries frames, used by one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include <polyrail/status.hpp>

#include "src/bootstrap/frame.hpp"
#include "src/bootstrap/socket.hpp"

namespace polyrail::bootstrap {

class Wire {
 public:
  Wire(FileDescriptor descriptor, int rank_count)
      : descriptor_(std::move(descriptor)), reader_(rank_count) {}

  // Puts an encoded frame behind what is still to be sent. Several wires may share the same bytes,
  // until the last has sent them.
  void queue(std::shared_ptr<const std::string> bytes) { output_.push_back(std::move(bytes)); }
  void queue(std::string bytes) { queue(std::make_shared<const std::string>(std::move(bytes))); }
  bool has_output() const { return !output_.empty(); }

  // Both move what the socket takes or has, and never wait. The status has the system's words and
  // no more: the caller knows who and when. Frames that came before the end can still be taken;
  // what could not be sent is forgotten.
  Status send();
  Status receive();
  bool has_frame() const { return reader_.has_frame(); }
  Frame take() { return reader_.take(); }

  // To poll for, and what poll answered.
  int descriptor() const { return descriptor_.get(); }
  short events() const;

 private:
  FileDescriptor descriptor_;
  FrameReader reader_;
  std::deque<std::shared_ptr<const std::string>> output_;
  std::size_t sent_bytes_ = 0;  // of output_.front()
};

}  // namespace polyrail::bootstrap
