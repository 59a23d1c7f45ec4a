#include "transports/shm/address.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "src/base/host_identity.hpp"

namespace polyrail::shm {
std::string Address::to_bytes() const {
  return std::string(bytes_of(*this));
}

Result<Address> Address::from_bytes(std::string_view bytes) {
  Address address;
  if (bytes.size() != sizeof(address) ||
      std::memcmp(bytes.data(), address.magic.data(), address.magic.size()) != 0) {
    return Status(StatusCode::kInvalidArgument,
                  "an address of " + std::to_string(bytes.size()) +
                      " bytes is not one of the shm transport of this version");
  }
  std::memcpy(&address, bytes.data(), sizeof(address));
  const std::uint32_t staging = address.staging_bytes;
  if (staging < 4096 || staging > (1U << 30) || (staging & (staging - 1)) != 0) {
    return Status(StatusCode::kInvalidArgument,
                  "an shm address with a staging area of " + std::to_string(staging) + " bytes");
  }
  return address;
}

Result<Address> own_address() {
  constexpr const char* kNamespace = "/proc/self/ns/pid";
  Address address;
  struct stat pid_namespace {};
  if (::stat(kNamespace, &pid_namespace) != 0) {
    return Status(StatusCode::kSystemError,
                  std::string("look at ") + kNamespace + ": " + std::strerror(errno));
  }
  std::error_code error;
  if (std::filesystem::read_symlink("/proc/self", error) != std::to_string(::getpid())) {
    return Status(StatusCode::kSystemError, "/proc shows the processes of another container");
  }
  address.host = checksum({host_identity()});
  address.pid_namespace = pid_namespace.st_ino;
  address.pid = ::getpid();
  return address;
}

Status is_reachable(const Address& own, const Address& peer) {
  if (own.host != peer.host) {
    return {StatusCode::kRemoteError, "it runs on another host"};
  }
  if (own.pid_namespace != peer.pid_namespace) {
    return {StatusCode::kRemoteError, "it runs in another container (pid namespace " +
                                          std::to_string(peer.pid_namespace) + ", here " +
                                          std::to_string(own.pid_namespace) + ")"};
  }
  return ok();
}

}  // namespace polyrail::shm
