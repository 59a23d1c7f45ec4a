// What the tests of the tcp transport share: a sink that writes down what happens, and ranks of one
// process that are joined over loopback addresses.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/log.hpp"
#include "transports/tcp/tcp.hpp"

namespace polyrail::tcp_test {

inline const std::string kKey(32, 'k');

inline Rail loopback_rail(int rank) {
  Rail rail;
  rail.name = "lo";
  rail.device = "lo";
  rail.address = "127.0.0." + std::to_string(rank + 1);
  return rail;
}

struct RankSetup {
  std::string key = kKey;
  int connect_timeout_ms = 20000;
  std::int64_t tcp_sockets = 1;
  Logger logger = silent_logger();
};

inline std::unique_ptr<Transport> open_rank(int rank, int rank_count, const RankSetup& setup = {}) {
  Options options;
  options.tcp_sockets = setup.tcp_sockets;
  TransportContext context;
  context.rank = rank;
  context.rank_count = rank_count;
  context.key = setup.key;
  context.communicator_id = 7;
  context.connect_timeout_ms = setup.connect_timeout_ms;
  auto transport = open_tcp(loopback_rail(rank), context, options, setup.logger);
  EXPECT_TRUE(transport.is_ok()) << transport.status().message();
  return transport.is_ok() ? std::move(transport.value()) : nullptr;
}

// Lets slices land in memory of its own, by signal, unless `land` says otherwise.
class RecordingSink final : public Sink {
 public:
  struct Acknowledged {
    std::uint64_t cookie;
    bool was_stalled;
    friend bool operator==(const Acknowledged&, const Acknowledged&) = default;
  };

  std::function<Landing(const SliceHeader&)> land;
  std::map<std::uint32_t, std::vector<std::byte>> slices;  // by signal
  std::vector<SliceHeader> landed;
  std::vector<Acknowledged> acknowledged;
  std::vector<std::string> events;  // "slice 3", "control hello", in the order of their arrival
  std::vector<Status> downs;
  int up_count = 0;
  int offer_count = 0;

  void on_up(Endpoint&) override { ++up_count; }
  void on_down(Endpoint& endpoint, const Status& why) override {
    EXPECT_EQ(endpoint.state(), EndpointState::kDown);
    downs.push_back(why);
  }
  Landing on_slice(Endpoint&, const SliceHeader& header) override {
    ++offer_count;
    if (land) return land(header);
    return into_own(header);
  }
  Landing into_own(const SliceHeader& header) {
    auto& target = slices[header.signal];
    if (target.size() < header.offset_bytes + header.bytes) {
      target.resize(header.offset_bytes + header.bytes);
    }
    return {Landing::How::kInto, target.data() + header.offset_bytes};
  }
  void on_landed(Endpoint&, const SliceHeader& header) override {
    landed.push_back(header);
    events.push_back("slice " + std::to_string(header.signal));
  }
  void on_bytes(Endpoint&, const SliceHeader&, std::uint32_t, std::span<const std::byte>) override {
    ADD_FAILURE() << "tcp does not stream";
  }
  void on_acknowledged(Endpoint&, std::uint64_t cookie, bool was_stalled) override {
    acknowledged.push_back({cookie, was_stalled});
  }
  void on_control(Endpoint&, std::span<const std::byte> message) override {
    events.push_back("control " +
                     std::string(reinterpret_cast<const char*>(message.data()), message.size()));
  }
};

// Ranks 0 and 1, driven in turns by the test's thread.
struct Pair {
  std::unique_ptr<Transport> transports[2];
  RecordingSink sinks[2];
  Endpoint* endpoints[2] = {};  // [rank]: its endpoint to the other rank

  explicit Pair(const RankSetup& setup = {}) {
    for (int rank : {0, 1}) transports[rank] = open_rank(rank, 2, setup);
    for (int rank : {0, 1}) {
      auto endpoint = transports[rank]->connect(1 - rank, transports[1 - rank]->address());
      EXPECT_TRUE(endpoint.is_ok()) << endpoint.status().message();
      if (endpoint.is_ok()) endpoints[rank] = endpoint.value();
    }
    drive_until([this] { return sinks[0].up_count == 1 && sinks[1].up_count == 1; });
  }

  void drive() {
    for (int rank : {0, 1}) {
      if (transports[rank] != nullptr) transports[rank]->progress(sinks[rank]);
    }
  }
  // The whole test has a deadline; there is none here.
  void drive_until(const std::function<bool()>& is_done) {
    while (!is_done()) {
      if (::testing::Test::HasFailure()) return;
      drive();
    }
  }
  void put(int rank, const SliceHeader& header, const void* source, std::uint64_t cookie) {
    while (endpoints[rank]->put(header, static_cast<const std::byte*>(source), cookie) ==
           Posted::kBusy) {
      ASSERT_TRUE(sinks[rank].downs.empty()) << sinks[rank].downs.front().message();
      drive();
    }
  }
  void send_control(int rank, std::string_view text) {
    while (endpoints[rank]->send_control(std::as_bytes(std::span(text))) == Posted::kBusy) {
      ASSERT_TRUE(sinks[rank].downs.empty()) << sinks[rank].downs.front().message();
      drive();
    }
  }
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

}  // namespace polyrail::tcp_test
