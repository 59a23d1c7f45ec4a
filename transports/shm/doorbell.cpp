#include "transports/shm/doorbell.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/memory_file.hpp"

namespace polyrail::shm {

Result<Doorbell> Doorbell::make() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Status(StatusCode::kSystemError,
                  std::string("make a pipe as doorbell: ") + std::strerror(errno));
  }
  const FileDescriptor reader(ends[0]);
  const FileDescriptor writer(ends[1]);
  auto both = open_descriptor_of(::getpid(), reader.get(), O_RDWR | O_NONBLOCK);
  if (!both.is_ok()) return both.status();
  return Doorbell(std::move(both).value());
}

void Doorbell::drain() const {
  std::array<char, 256> rings;
  while (::read(pipe_.get(), rings.data(), rings.size()) == static_cast<ssize_t>(rings.size())) {
  }
}

Result<Ringer> Ringer::open(int pid, int descriptor, std::atomic<std::uint32_t>& asleep) {
  auto pipe = open_descriptor_of(pid, descriptor, O_RDWR | O_NONBLOCK);
  if (!pipe.is_ok()) return pipe.status();
  struct stat state {};
  if (::fstat(pipe.value().get(), &state) != 0 || !S_ISFIFO(state.st_mode)) {
    return Status(StatusCode::kRemoteError, "descriptor " + std::to_string(descriptor) +
                                                " of process " + std::to_string(pid) +
                                                " is not a doorbell");
  }
  Ringer ringer;
  ringer.pipe_ = std::move(pipe).value();
  ringer.asleep_ = &asleep;
  return ringer;
}

void Ringer::ring() const {
  // Whoever takes the flag away rings; so a sleeper is rung once. A full pipe has rung already.
  if (asleep_->exchange(0) == 0) return;
  const char one = 1;
  [[maybe_unused]] const auto written = ::write(pipe_.get(), &one, 1);
}

}  // namespace polyrail::shm
