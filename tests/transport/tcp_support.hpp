// What the tests of the tcp transport share: ranks of this process over lo, and sockets that are
// driven by hand, by a stranger or by a rank that misbehaves.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/rank_harness.hpp"
#include "transports/tcp/address.hpp"
#include "transports/tcp/descriptor.hpp"
#include "transports/tcp/handshake.hpp"
#include "transports/tcp/tcp.hpp"
#include "transports/tcp/wire.hpp"

namespace polyrail::tcp_test {

using testing::HarnessRank;
using testing::RankHarness;
using testing::RecordingSink;
using Kind = RecordingSink::Kind;

inline const std::string kKey(32, 'k');
inline constexpr std::uint64_t kCommunicator = 7;

inline Options with_sockets(int count) {
  Options options;
  options.tcp_sockets = count;
  return options;
}

inline Rail lo_rail() {
  Rail rail;
  rail.name = rail.device = "lo";
  rail.address = "127.0.0.1";
  return rail;
}

inline testing::OpenTransport open_lo(Options options = {}, Logger logger = silent_logger()) {
  return [=](const TransportContext& context) {
    return open_tcp(lo_rail(), context, options, logger);
  };
}

// One rank of several, opened alone.
struct LoneRank {
  HarnessRank own;
  std::unique_ptr<Transport>& transport = own.transport;
  RecordingSink& sink = own.sink;

  explicit LoneRank(int rank, int rank_count = 2, int connect_timeout_ms = 60000,
                    Logger logger = silent_logger(), const std::string& key = kKey) {
    TransportContext context;
    context.rank = rank;
    context.rank_count = rank_count;
    context.key = key;
    context.communicator_id = kCommunicator;
    context.connect_timeout_ms = connect_timeout_ms;
    auto opened = open_lo({}, logger)(context);
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    if (opened.is_ok()) transport = std::move(opened.value());
  }
  bool progress() { return own.progress(); }
  void progress_until(const std::function<bool()>& is_done) {
    while (!is_done()) {
      if (!progress()) std::this_thread::yield();
    }
  }
  Endpoint* connect(int peer, std::string_view address) {
    auto endpoint = transport->connect(peer, address);
    EXPECT_TRUE(endpoint.is_ok()) << endpoint.status().message();
    return endpoint.is_ok() ? endpoint.value() : nullptr;
  }
  tcp::SocketAddress listens_at() const {
    return tcp::RailAddress::from_bytes(transport->address()).value().socket;
  }
};

// An address at which a rank of this host could be.
inline std::string address_on_lo(std::uint16_t port) {
  tcp::RailAddress address;
  address.socket = tcp::SocketAddress::parse("127.0.0.1", "lo").value();
  address.socket.set_port(port);
  address.host = tcp::host_identity();
  return address.to_bytes();
}

// A plain socket to a rank's listener. Receives do not block: whoever waits drives the rank.
class RawSocket {
 public:
  explicit RawSocket(const tcp::SocketAddress& to) : fd_(socket(to.family(), SOCK_STREAM, 0)) {
    EXPECT_EQ(connect(fd_.get(), to.raw(), to.raw_bytes()), 0) << std::strerror(errno);
  }
  void send(const void* bytes, std::size_t size) {
    // The other end may have hung up already; that shows when it is read from.
    (void)!::send(fd_.get(), bytes, size, MSG_NOSIGNAL);
  }
  void send(std::string_view bytes) { send(bytes.data(), bytes.size()); }
  // True once the other end has closed; swallows what comes before.
  bool is_closed() {
    char bytes[4096];
    ssize_t got;
    while ((got = recv(fd_.get(), bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
    }
    return got == 0 || errno != EAGAIN;
  }
  // Receives exactly so many bytes while the rank makes progress.
  std::vector<std::uint8_t> receive(std::size_t size, LoneRank& rank) {
    std::vector<std::uint8_t> bytes(size);
    std::size_t have = 0;
    rank.progress_until([&] {
      const ssize_t got = recv(fd_.get(), bytes.data() + have, size - have, MSG_DONTWAIT);
      if (got > 0) have += static_cast<std::size_t>(got);
      return have == size || got == 0 || (got < 0 && errno != EAGAIN);
    });
    bytes.resize(have);
    return bytes;
  }
  int fd() const { return fd_.get(); }

 private:
  tcp::Descriptor fd_;
};

inline tcp::Handshake::Nonce some_nonce(std::uint8_t seed) {
  tcp::Handshake::Nonce nonce;
  nonce.fill(seed);
  return nonce;
}

inline tcp::HandshakeSelf self_of(std::uint32_t rank, std::uint32_t rank_count = 2,
                                  const std::string& key = kKey) {
  return {.key = key, .communicator_id = kCommunicator, .rank = rank, .rank_count = rank_count};
}

// Rank 1 of 2 by hand: proves itself to rank 0, then sends whatever the test wants.
class RawRank {
 public:
  explicit RawRank(LoneRank& rank) : socket_(rank.listens_at()) { prove(rank); }
  RawSocket& socket() { return socket_; }
  // Gives the head its check sum, so that only its other faults are found.
  void send_frame(tcp::FramePrefix prefix, const SliceHeader* header, std::string_view payload) {
    std::vector<std::byte> bytes(tcp::kPrefixBytes + (header != nullptr ? sizeof(*header) : 0));
    std::memcpy(bytes.data(), &prefix, sizeof(prefix));
    if (header != nullptr) std::memcpy(bytes.data() + sizeof(prefix), header, sizeof(*header));
    prefix.check = tcp::frame_check(bytes.data(), bytes.size());
    std::memcpy(bytes.data(), &prefix, sizeof(prefix));
    const auto tail = std::as_bytes(std::span(payload));
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    socket_.send(bytes.data(), bytes.size());
  }

 private:
  void prove(LoneRank& rank) {
    auto handshake = tcp::Handshake::for_dialer(self_of(1), 0, 0, 1, some_nonce(9));
    while (handshake.state() != tcp::Handshake::State::kDone) {
      socket_.send(handshake.outgoing());
      handshake.outgoing().clear();
      const auto message = socket_.receive(handshake.awaited_bytes(), rank);
      ASSERT_EQ(message.size(), handshake.awaited_bytes()) << "the rank hung up";
      const Status status = handshake.take(message);
      ASSERT_TRUE(status.is_ok()) << status.message();
    }
  }

  RawSocket socket_;
};

// Memory in which slices land, by signal.
class Landings {
 public:
  Landing operator()(Endpoint&, const SliceHeader& header) {
    auto& target = slices_[header.signal];
    const std::size_t needed = header.offset_bytes + header.bytes;
    if (target.size() < needed) target.resize(needed);
    return {Landing::How::kInto, target.data() + header.offset_bytes};
  }
  const std::vector<std::byte>& operator[](std::uint32_t signal) { return slices_[signal]; }

 private:
  std::map<std::uint32_t, std::vector<std::byte>> slices_;
};

// Bytes that differ from slice to slice and from place to place.
inline std::vector<std::byte> pattern(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::byte> result(bytes);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (std::byte& byte : result) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<std::byte>(state >> 56);
  }
  return result;
}

inline SliceHeader slice(std::uint32_t signal, std::size_t bytes, std::uint32_t operation = 0) {
  SliceHeader header;
  header.operation = operation;
  header.signal = signal;
  header.bytes = static_cast<std::uint32_t>(bytes);
  return header;
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace polyrail::tcp_test
