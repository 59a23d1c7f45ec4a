// Address: what one process tells the others so that they can open its memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <polyrail/status.hpp>

#include "src/base/key.hpp"

namespace polyrail::shm {

// Trivially copyable; travels as it is.
struct Address {
  std::array<char, 8> magic{'p', 'r', '-', 's', 'h', 'm', '\0', '\1'};  // the last is the version
  std::uint64_t host = 0;           // a checksum of host_identity()
  std::uint64_t pid_namespace = 0;  // in which `pid` means something
  std::int32_t pid = 0;
  std::int32_t outbox = -1;         // descriptor of the memory file of all its directions
  std::int32_t bell = -1;           // descriptor of its doorbell
  std::uint32_t staging_bytes = 0;  // of each direction
  Nonce nonce{};                    // challenges the peer

  std::string to_bytes() const;
  static Result<Address> from_bytes(std::string_view bytes);
};
static_assert(sizeof(Address) == 72);

// An address with what identifies this process; descriptors, sizes and nonce are the caller's.
Result<Address> own_address();

// Why the process with that address cannot be reached from here; kOk if it may be tried.
Status is_reachable(const Address& own, const Address& peer);

}  // namespace polyrail::shm
