// Descriptors and the few socket calls that the TCP bootstrap needs. Every socket is non-blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <polyrail/status.hpp>

#include "src/base/address.hpp"
#include "src/base/file_descriptor.hpp"

struct pollfd;

namespace polyrail::bootstrap {

using Clock = std::chrono::steady_clock;

// A socket that is bound but does not listen yet: the port is kept, callers are refused, and
// another process may bind the address too as long as nobody listens.
struct BoundSocket {
  FileDescriptor descriptor;
  Address address;  // with the port that the system chose, if it was asked to
};

// Binds exactly this address. Port 0: any free port. kInvalidUsage: another socket listens there;
// kInvalidArgument: this host does not have the address.
Result<BoundSocket> bind_socket(const Address& address);
// kInvalidUsage: another socket of this address was faster.
Status start_listening(const BoundSocket& socket);

enum class Accept : std::uint8_t { kNobody, kCame, kNoDescriptor };
struct Accepted {
  Accept outcome = Accept::kNobody;
  FileDescriptor descriptor;
  Address peer;
};
Accepted accept_one(const FileDescriptor& listener);

// Begins to connect. When the descriptor polls as writable, connect_result tells how it went.
Result<FileDescriptor> start_connecting(const Address& address);
Status connect_result(const FileDescriptor& descriptor);

// One send or receive, as much as goes. `error` is 0 unless the connection is broken; `has_ended`
// when the peer has closed its side; neither and no bytes: try again after poll.
struct Moved {
  std::size_t bytes = 0;
  bool has_ended = false;
  int error = 0;
};
Moved send_some(const FileDescriptor& descriptor, std::string_view bytes);
Moved receive_some(const FileDescriptor& descriptor, char* bytes, std::size_t size);

// Waits until one of them is ready or the deadline is there.
void poll_until(std::vector<pollfd>& descriptors, Clock::time_point deadline);

// The system's words for an error number.
std::string system_text(int error);

// Makes room for `count` more descriptors: raises the process's soft limit towards its hard limit
// if need be, and tells how many of them fit then.
std::size_t reserve_descriptors(std::size_t count);

}  // namespace polyrail::bootstrap
