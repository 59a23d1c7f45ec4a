// Doorbell: wakes the thread of another process that sleeps on a descriptor.
//
// A pipe: unlike an eventfd it can be opened by its number in another process, and unlike a socket
// it does not care for network namespaces.
#pragma once

#include <atomic>
#include <cstdint>

#include <polyrail/status.hpp>

#include "src/base/file_descriptor.hpp"

namespace polyrail::shm {

// The owner's end. Readable after somebody has rung, until drained.
class Doorbell {
 public:
  static Result<Doorbell> make();
  int descriptor() const { return pipe_.get(); }
  void drain() const;

 private:
  explicit Doorbell(FileDescriptor pipe) : pipe_(std::move(pipe)) {}
  FileDescriptor pipe_;  // open for both directions, so that the pipe never hangs up
};

// The end of those who ring.
class Ringer {
 public:
  Ringer() = default;
  // `asleep` says what the owner of the bell sleeps for, if it sleeps.
  static Result<Ringer> open(int pid, int descriptor, std::atomic<std::uint32_t>& asleep);

  // To be called after publishing news of these kinds (AsleepFor).
  void wake_for(std::uint32_t kinds) const {
    if ((asleep_->load() & kinds) != 0) ring();
  }

 private:
  void ring() const;
  // Open for both directions as well: writing then never meets a pipe without a reader, which
  // would raise SIGPIPE.
  FileDescriptor pipe_;
  std::atomic<std::uint32_t>* asleep_ = nullptr;
};

}  // namespace polyrail::shm
