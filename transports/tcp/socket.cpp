#include "transports/tcp/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace polyrail::tcp {
namespace {

constexpr int kUnsentBytes = 128 * 1024;

constexpr int kBacklog = 1024;
// An idle peer whose host has gone is noticed after idle + probes * interval seconds.
constexpr int kKeepIdleS = 20;
constexpr int kKeepIntervalS = 5;
constexpr int kKeepProbes = 4;

void set_option(int fd, int level, int name, int value) {
  // Options that the system refuses only cost speed or diagnosis, hence no error.
  (void)setsockopt(fd, level, name, &value, sizeof(value));
}

Result<Descriptor> bound_socket(const SocketPlace& place) {
  Descriptor fd(
      socket(place.address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd.is_open()) return system_error("make a socket", errno);
  if (place.address.family() == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  // Without the right to bind to the device (kernels before 5.7) routing picks it by the address.
  if (!place.address.is_loopback() && !place.device.empty() &&
      setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, place.device.c_str(),
                 static_cast<socklen_t>(place.device.size())) != 0 &&
      errno != EPERM) {
    return system_error("bind a socket to the device " + place.device, errno);
  }
  if (bind(fd.get(), place.address.raw(), place.address.raw_bytes()) != 0) {
    return system_error(
        "bind a socket to " + place.address.ip_text() + " (device " + place.device + ")", errno);
  }
  return fd;
}

}  // namespace

Result<Listener> listen_at(const SocketPlace& place) {
  Result<Descriptor> fd = bound_socket(place);
  if (!fd.is_ok()) return fd.status();
  if (listen(fd.value().get(), kBacklog) != 0) {
    return system_error("listen at " + place.address.ip_text(), errno);
  }
  Listener listener;
  listener.address = local_address(fd.value().get());
  listener.fd = std::move(fd.value());
  return listener;
}

Result<Descriptor> dial(const SocketPlace& place, const SocketAddress& remote) {
  Result<Descriptor> fd = bound_socket(place);
  if (!fd.is_ok()) return fd.status();
  set_stream_options(fd.value().get());
  if (connect(fd.value().get(), remote.raw(), remote.raw_bytes()) != 0 && errno != EINPROGRESS) {
    const int error_number = errno;
    return system_error("connect " + describe_path(place.address, place.device, remote),
                        error_number);
  }
  return fd;
}

void set_stream_options(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  // Acknowledgements go behind what the kernel has already taken: let it take little at a time.
  set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleS);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalS);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepProbes);
}

void reset_on_close(int fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

SocketAddress local_address(int fd) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return {};
  return {reinterpret_cast<const sockaddr*>(&storage), bytes};
}

std::string describe_path(const SocketAddress& local, const std::string& device,
                          const SocketAddress& remote) {
  return (local.port() == 0 ? local.ip_text() : local.text()) + " (" + device + ") -> " +
         remote.text();
}

Status system_error(const std::string& attempted, int error_number) {
  return {StatusCode::kSystemError, attempted + ": " + std::strerror(error_number)};
}

}  // namespace polyrail::tcp
