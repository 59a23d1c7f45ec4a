// What the tests of the shm transport share: payloads in each kind of memory, other processes to
// talk to, and counts of what must not be left behind.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/rank_harness.hpp"

namespace polyrail::testing {

// Where a payload lies at its sender; decides how the transport moves it.
enum class Source { kOrdinary, kShared };

// A payload whose bytes follow from `seed`, not aligned to cache lines.
class Payload {
 public:
  Payload(Source kind, std::size_t bytes, unsigned seed = 0);
  ~Payload();
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;
  std::byte* data() { return static_cast<std::byte*>(block_) + kShift; }

 private:
  static constexpr std::size_t kShift = 8;
  const Source kind_;
  void* block_ = nullptr;
};

// Fails the test at the first byte that is not that of such a payload.
void expect_payload(std::span<const std::byte> bytes, unsigned seed = 0);

// One end of a pair of sockets between processes: messages, whole and in order.
class Wire {
 public:
  explicit Wire(int socket) : socket_(socket) {}
  void send(const std::string& message) const;
  std::string receive() const;  // "" if the other end is gone
  bool has_message() const;     // or the other end is gone
  int socket() const { return socket_; }

 private:
  int socket_;
};

// Another process, ended at the latest by the destructor.
class OtherProcess {
 public:
  // A fork of this one that runs `body`; fails the test if that failed or crashed.
  static std::unique_ptr<OtherProcess> fork(const std::function<void(const Wire&)>& body);
  // This program again, started afresh, running one disabled test; its wire is in the environment.
  static std::unique_ptr<OtherProcess> execute(const std::string& disabled_test);
  static Wire wire_from_environment();

  ~OtherProcess();
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  const Wire& wire() const { return wire_; }
  // Waits for its end and returns its exit status; -1 after a signal.
  int join();
  void kill();

 private:
  OtherProcess(int pid, int socket) : pid_(pid), wire_(socket) {}
  int pid_;
  Wire wire_;
};

// Exit status of a body that cannot run here.
inline constexpr int kCannotRun = 77;

// One rank of two over shm, up and ready; the other is at the far end of the wire.
std::unique_ptr<HarnessRank> join_over(const Wire& wire, int rank);

// Names in /dev/shm, descriptors and mappings of shared memory of this process.
struct Leftovers {
  std::size_t name_count = 0;
  std::size_t descriptor_count = 0;
  std::size_t mapping_count = 0;
  static Leftovers now();
  friend bool operator==(const Leftovers&, const Leftovers&) = default;
};
std::ostream& operator<<(std::ostream& out, const Leftovers& leftovers);

}  // namespace polyrail::testing
