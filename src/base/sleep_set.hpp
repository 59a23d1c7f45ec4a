// SleepSet: one descriptor to sleep on that stands for several and for a deadline.
#pragma once

#include <chrono>
#include <optional>

#include <polyrail/status.hpp>

#include "src/base/file_descriptor.hpp"

namespace polyrail {

class SleepSet {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<SleepSet> open();

  // Readable when one of the watched descriptors is, or when the deadline has passed.
  int descriptor() const { return epoll_.get(); }
  Status watch(int descriptor);
  void forget(int descriptor);
  // Replaces the deadline before, passed or not; nullopt: none.
  void set_deadline(std::optional<Clock::time_point> deadline);

 private:
  SleepSet(FileDescriptor timer, FileDescriptor epoll)
      : timer_(std::move(timer)), epoll_(std::move(epoll)) {}

  FileDescriptor timer_;
  FileDescriptor epoll_;
};

// An eventfd that does not block: raised from any thread, lowered by the one that slept.
Result<FileDescriptor> open_event();
void raise_event(int descriptor);
void lower_event(int descriptor);

}  // namespace polyrail
