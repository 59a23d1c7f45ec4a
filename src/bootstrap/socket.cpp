#include "src/bootstrap/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <system_error>

namespace polyrail::bootstrap {
namespace {

Status failure(StatusCode code, const std::string& attempt, int error) {
  return {code, attempt + ": " + system_text(error)};
}

void set_flag(int descriptor, int level, int name) {
  const int one = 1;
  // Only tuning: a socket without it still works.
  (void)setsockopt(descriptor, level, name, &one, sizeof(one));
}

Result<FileDescriptor> open_socket(const Address& address) {
  FileDescriptor descriptor(socket(address.ip.is_ipv6 ? AF_INET6 : AF_INET,
                                   SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!descriptor.is_open()) return failure(StatusCode::kSystemError, "open a socket", errno);
  if (address.ip.is_ipv6) set_flag(descriptor.get(), IPPROTO_IPV6, IPV6_V6ONLY);
  return descriptor;
}

Address own_address(int descriptor) {
  SocketAddress own;
  own.size = sizeof(own.storage);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&own.storage), &own.size) != 0) return {};
  return from_socket_address(own.get());
}

}  // namespace

Result<BoundSocket> bind_socket(const Address& address) {
  const std::string attempt = "bind " + to_text(address);
  const Result<SocketAddress> target = to_socket_address(address);
  if (!target.is_ok()) return Status(StatusCode::kInvalidArgument, target.status().message());
  Result<FileDescriptor> opened = open_socket(address);
  if (!opened.is_ok()) return opened.status();
  BoundSocket result{std::move(opened).value(), address};
  // SO_REUSEADDR: two sockets may share the address until one listens, and what an earlier process
  // left in TIME_WAIT is no obstacle. For a free port it comes after bind, which then takes none
  // that somebody has.
  if (address.port != 0) set_flag(result.descriptor.get(), SOL_SOCKET, SO_REUSEADDR);
  if (bind(result.descriptor.get(), target.value().get(), target.value().size) != 0) {
    const StatusCode code = errno == EADDRINUSE      ? StatusCode::kInvalidUsage
                            : errno == EADDRNOTAVAIL ? StatusCode::kInvalidArgument
                                                     : StatusCode::kSystemError;
    return failure(code, attempt, errno);
  }
  set_flag(result.descriptor.get(), SOL_SOCKET, SO_REUSEADDR);
  result.address.port = own_address(result.descriptor.get()).port;
  return result;
}

Status start_listening(const BoundSocket& socket) {
  if (listen(socket.descriptor.get(), SOMAXCONN) == 0) return ok();
  return failure(errno == EADDRINUSE ? StatusCode::kInvalidUsage : StatusCode::kSystemError,
                 "listen at " + to_text(socket.address), errno);
}

Accepted accept_one(const FileDescriptor& listener) {
  Accepted result;
  SocketAddress peer;
  while (true) {
    peer.size = sizeof(peer.storage);
    result.descriptor =
        FileDescriptor(accept4(listener.get(), reinterpret_cast<sockaddr*>(&peer.storage),
                               &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (result.descriptor.is_open()) break;
    if (errno == EINTR || errno == ECONNABORTED) continue;  // that caller is gone; the next one
    const bool is_out = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    result.outcome = is_out ? Accept::kNoDescriptor : Accept::kNobody;
    return result;
  }
  set_flag(result.descriptor.get(), IPPROTO_TCP, TCP_NODELAY);
  result.outcome = Accept::kCame;
  result.peer = from_socket_address(peer.get());
  return result;
}

Result<FileDescriptor> start_connecting(const Address& address) {
  const Result<SocketAddress> target = to_socket_address(address);
  if (!target.is_ok()) return target.status();
  Result<FileDescriptor> descriptor = open_socket(address);
  if (!descriptor.is_ok()) return descriptor;
  set_flag(descriptor.value().get(), IPPROTO_TCP, TCP_NODELAY);
  if (connect(descriptor.value().get(), target.value().get(), target.value().size) != 0 &&
      errno != EINPROGRESS) {
    return Status(StatusCode::kSystemError, system_text(errno));
  }
  return descriptor;
}

Status connect_result(const FileDescriptor& descriptor) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(descriptor.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return {StatusCode::kSystemError, system_text(error)};
  SocketAddress peer;
  peer.size = sizeof(peer.storage);
  if (getpeername(descriptor.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0) {
    return {StatusCode::kSystemError, system_text(errno)};
  }
  // Calling a port of this host that nobody has may end at the caller's own socket. Reset it, so
  // that nothing stays behind in the way of the real owner.
  if (own_address(descriptor.get()) == from_socket_address(peer.get())) {
    const linger reset{1, 0};
    (void)setsockopt(descriptor.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    return {StatusCode::kSystemError, system_text(ECONNREFUSED)};
  }
  return ok();
}

Moved send_some(const FileDescriptor& descriptor, std::string_view bytes) {
  while (true) {
    const ssize_t sent = send(descriptor.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return {static_cast<std::size_t>(sent), false, 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    return {0, false, errno};
  }
}

Moved receive_some(const FileDescriptor& descriptor, char* bytes, std::size_t size) {
  while (true) {
    const ssize_t received = recv(descriptor.get(), bytes, size, 0);
    if (received > 0) return {static_cast<std::size_t>(received), false, 0};
    if (received == 0) return {0, true, 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    return {0, false, errno};
  }
}

void poll_until(std::vector<pollfd>& descriptors, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int wait_ms = static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
    if (poll(descriptors.data(), descriptors.size(), wait_ms) >= 0 || errno != EINTR) return;
  }
}

std::string system_text(int error) {
  return std::system_category().message(error);  // strerror's text, safe in threads
}

std::size_t reserve_descriptors(std::size_t count) {
  std::size_t open_count = 0;
  std::error_code ignored;  // without /proc nothing is counted, and the limit alone decides
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd", ignored);
       entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    ++open_count;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return count;
  if (limit.rlim_cur < open_count + count && limit.rlim_cur < limit.rlim_max) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const std::size_t room = limit.rlim_cur > open_count ? limit.rlim_cur - open_count : 0;
  return std::min(room, count);
}

}  // namespace polyrail::bootstrap
