#include "src/exec/waker.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace polyrail {

Result<std::shared_ptr<Waker>> Waker::create() {
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) {
    return Status(StatusCode::kSystemError,
                  std::string("make an event descriptor: ") + std::strerror(errno));
  }
  return std::shared_ptr<Waker>(new Waker(descriptor));
}

Waker::~Waker() {
  ::close(descriptor_);
}

void Waker::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
}

void Waker::clear() {
  std::uint64_t value;
  [[maybe_unused]] const auto count = ::read(descriptor_, &value, sizeof value);
}

}  // namespace polyrail
