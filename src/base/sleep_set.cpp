#include "src/base/sleep_set.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace polyrail {
namespace {

Status failed_to(const char* what) {
  const int error = errno;
  return {StatusCode::kSystemError,
          std::string(what) + " to sleep on: " + std::system_category().message(error)};
}

}  // namespace

Result<SleepSet> SleepSet::open() {
  FileDescriptor timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer.is_open()) return failed_to("make a timer");
  FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_open()) return failed_to("make an epoll descriptor");
  SleepSet set(std::move(timer), std::move(epoll));
  const auto status = set.watch(set.timer_.get());
  if (!status.is_ok()) return status;
  return set;
}

Status SleepSet::watch(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    return failed_to("watch a descriptor");
  }
  return ok();
}

void SleepSet::forget(int descriptor) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void SleepSet::set_deadline(std::optional<Clock::time_point> deadline) {
  itimerspec spec{};  // all zero: no deadline
  if (deadline) {
    // The steady clock is CLOCK_MONOTONIC.
    const auto since_start = std::max(std::chrono::nanoseconds(deadline->time_since_epoch()),
                                      std::chrono::nanoseconds(1));
    spec.it_value.tv_sec = since_start.count() / 1'000'000'000;
    spec.it_value.tv_nsec = since_start.count() % 1'000'000'000;
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

Result<FileDescriptor> open_event() {
  FileDescriptor event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event.is_open()) return failed_to("make an event");
  return event;
}

void raise_event(int descriptor) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor, &one, sizeof(one));
}

void lower_event(int descriptor) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(descriptor, &count, sizeof(count));
}

}  // namespace polyrail
