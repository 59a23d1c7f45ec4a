#include "transports/shm/address.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace polyrail::shm {
namespace {

std::string text_of(const std::array<char, 40>& boot_id) {
  return {boot_id.data(), ::strnlen(boot_id.data(), boot_id.size())};
}

}  // namespace

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
  constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
  constexpr const char* kNamespace = "/proc/self/ns/pid";
  Address address;
  std::string boot_id;
  if (!std::getline(std::ifstream(kBootId), boot_id) || boot_id.size() > address.boot_id.size()) {
    return Status(StatusCode::kSystemError, std::string("cannot read ") + kBootId);
  }
  std::memcpy(address.boot_id.data(), boot_id.data(), boot_id.size());
  struct stat pid_namespace {};
  if (::stat(kNamespace, &pid_namespace) != 0) {
    return Status(StatusCode::kSystemError,
                  std::string("look at ") + kNamespace + ": " + std::strerror(errno));
  }
  address.pid_namespace = pid_namespace.st_ino;
  address.pid = ::getpid();
  return address;
}

Status is_reachable(const Address& own, const Address& peer) {
  if (own.boot_id != peer.boot_id) {
    return {StatusCode::kRemoteError, "it runs on another host (boot id " + text_of(peer.boot_id) +
                                          ", here " + text_of(own.boot_id) + ")"};
  }
  if (own.pid_namespace != peer.pid_namespace) {
    return {StatusCode::kRemoteError, "it runs in another container (pid namespace " +
                                          std::to_string(peer.pid_namespace) + ", here " +
                                          std::to_string(own.pid_namespace) + ")"};
  }
  return ok();
}

}  // namespace polyrail::shm
