#include "tests/transport/shm_support.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>

#include <polyrail/communicator.hpp>

#include "transports/shm/shm.hpp"

namespace polyrail::testing {
namespace {

constexpr const char* kWireVariable = "SHM_TEST_WIRE";

std::byte payload_byte(std::size_t i, unsigned seed) {
  return static_cast<std::byte>(i * 31 + (i >> 8) * 7 + (i >> 16) + seed * 101);
}

std::array<int, 2> make_sockets() {
  std::array<int, 2> sockets{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets.data()), 0);
  return sockets;
}

}  // namespace

Payload::Payload(Source kind, std::size_t bytes, unsigned seed) : kind_(kind) {
  if (kind == Source::kShared) {
    const auto memory = mem_alloc(bytes + kShift);
    EXPECT_TRUE(memory.is_ok()) << memory.status().message();
    block_ = memory.value();
  } else {
    block_ = std::malloc(bytes + kShift);
  }
  for (std::size_t i = 0; i < bytes; ++i) data()[i] = payload_byte(i, seed);
}

Payload::~Payload() {
  if (kind_ == Source::kShared) {
    EXPECT_TRUE(mem_free(block_).is_ok());
  } else {
    std::free(block_);
  }
}

void expect_payload(std::span<const std::byte> bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_EQ(bytes[i], payload_byte(i, seed)) << "at byte " << i << " of " << bytes.size();
  }
}

void Wire::send(const std::string& message) const {
  EXPECT_EQ(::send(socket_, message.data(), message.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(message.size()));
}

std::string Wire::receive() const {
  std::string message(4096, '\0');
  const ssize_t bytes = ::recv(socket_, message.data(), message.size(), 0);
  message.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
  return message;
}

bool Wire::has_message() const {
  pollfd waiting{socket_, POLLIN, 0};
  return ::poll(&waiting, 1, 0) != 0;
}

std::unique_ptr<OtherProcess> OtherProcess::fork(const std::function<void(const Wire&)>& body) {
  const auto sockets = make_sockets();
  const int pid = ::fork();
  if (pid == 0) {
    ::close(sockets[0]);
    body(Wire(sockets[1]));
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  ::close(sockets[1]);
  return std::unique_ptr<OtherProcess>(new OtherProcess(pid, sockets[0]));
}

std::unique_ptr<OtherProcess> OtherProcess::execute(const std::string& disabled_test) {
  const auto sockets = make_sockets();
  const int pid = ::fork();
  if (pid == 0) {
    ::close(sockets[0]);
    ::setenv(kWireVariable, std::to_string(sockets[1]).c_str(), 1);
    const std::string filter = "--gtest_filter=" + disabled_test;
    ::execl("/proc/self/exe", "shm_test", "--gtest_also_run_disabled_tests", filter.c_str(),
            nullptr);
    ::_exit(1);
  }
  ::close(sockets[1]);
  return std::unique_ptr<OtherProcess>(new OtherProcess(pid, sockets[0]));
}

Wire OtherProcess::wire_from_environment() {
  const char* const socket = std::getenv(kWireVariable);
  return Wire(socket == nullptr ? -1 : std::atoi(socket));
}

OtherProcess::~OtherProcess() {
  kill();
  ::close(wire_.socket());
}

int OtherProcess::join() {
  int status = 0;
  EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void OtherProcess::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::unique_ptr<HarnessRank> join_over(const Wire& wire, int rank) {
  TransportContext context;
  context.rank = rank;
  context.rank_count = 2;
  context.key = std::string(32, 'k');
  auto own = std::make_unique<HarnessRank>();
  auto opened = open_builtin("shm")(context);
  EXPECT_TRUE(opened.is_ok()) << opened.status().message();
  own->transport = std::move(opened).value();
  wire.send(own->transport->address());
  auto endpoint = own->transport->connect(1 - rank, wire.receive());
  EXPECT_TRUE(endpoint.is_ok()) << endpoint.status().message();
  own->endpoints.resize(2);
  own->endpoints[1 - rank] = endpoint.value();
  own->run_asleep([&] { return !own->sink.events().empty(); });
  EXPECT_EQ(own->sink.count(RecordingSink::Kind::kUp), 1u) << own->sink.events().front().text;
  return own;
}

Leftovers Leftovers::now() {
  namespace fs = std::filesystem;
  const auto count = [](const char* folder) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  };
  Leftovers leftovers{.name_count = count("/dev/shm"), .descriptor_count = count("/proc/self/fd")};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    leftovers.mapping_count += line.find("memfd:polyrail") != std::string::npos ? 1 : 0;
  }
  return leftovers;
}

std::ostream& operator<<(std::ostream& out, const Leftovers& leftovers) {
  return out << leftovers.name_count << " names in /dev/shm, " << leftovers.descriptor_count
             << " descriptors, " << leftovers.mapping_count << " mappings";
}

}  // namespace polyrail::testing
