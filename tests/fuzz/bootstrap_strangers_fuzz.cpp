// Fuzzes rank 0's door: whatever a stranger says, it is not taken for a rank and nothing crashes.
// The first byte is the size of the pieces in which the rest arrives.
#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/bootstrap/strangers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace bootstrap = polyrail::bootstrap;
  if (size == 0) return 0;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  const polyrail::FileDescriptor stranger(ends[0]);
  bootstrap::JoinSetup setup;
  setup.self = bootstrap::own_claim(0, 2);
  setup.key.fill(1);
  static const polyrail::Logger kSilent = polyrail::silent_logger();
  setup.logger = kSilent;
  bootstrap::Strangers strangers(setup, 4);
  strangers.add(polyrail::FileDescriptor(ends[1]), polyrail::Address());
  std::string_view words(reinterpret_cast<const char*>(data) + 1, size - 1);
  while (strangers.count() > 0 && !words.empty()) {
    const bootstrap::Moved moved =
        bootstrap::send_some(stranger, words.substr(0, std::size_t{1} + data[0]));
    if (moved.bytes == 0) break;
    words.remove_prefix(moved.bytes);
    const pollfd ready{0, 0, POLLIN};
    if (!strangers.step(&ready, 1000).empty()) std::abort();
  }
  return 0;
}
