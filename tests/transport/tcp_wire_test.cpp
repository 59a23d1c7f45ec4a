// What a rank that has proven itself may send: frames that are wrong take the endpoint down and do
// no other harm. And the handshake, message by message.
#include <random>

#include "tests/transport/tcp_support.hpp"

namespace polyrail::tcp_test {
namespace {

using tcp::FrameKind;
using tcp::FramePrefix;
using tcp::Handshake;

// Rank 0 of 2 with a peer that is driven by hand.
class TcpWire : public ::testing::Test {
 protected:
  TcpWire() {
    zero.connect(1, address_on_lo(1));
    raw = std::make_unique<RawRank>(zero);
    zero.progress_until([&] { return zero.sink.count(Kind::kUp) == 1; });
    zero.sink.decide = std::ref(landings);
  }
  std::string reason_of_end() {
    zero.progress_until([&] { return zero.sink.count(Kind::kDown) == 1; });
    EXPECT_TRUE(raw->socket().is_closed());
    return zero.sink.events(Kind::kDown).front().text;
  }
  void expect_end(const std::string& part) {
    const std::string why = reason_of_end();
    EXPECT_NE(why.find(part), std::string::npos) << why;
  }

  LoneRank zero{0};
  Landings landings;
  std::unique_ptr<RawRank> raw;
};

TEST_F(TcpWire, TakesASliceThatComesByteByByte) {
  const std::string payload = "eight by";
  SliceHeader header = slice(3, payload.size());
  FramePrefix prefix{.kind = FrameKind::kSlice, .bytes = header.bytes};
  std::vector<std::byte> frame(tcp::kSliceHeadBytes);
  std::memcpy(frame.data(), &prefix, sizeof(prefix));
  std::memcpy(frame.data() + sizeof(prefix), &header, sizeof(header));
  prefix.check = tcp::frame_check(frame.data(), frame.size());
  std::memcpy(frame.data(), &prefix, sizeof(prefix));
  const auto tail = bytes_of(payload);
  frame.insert(frame.end(), tail.begin(), tail.end());
  for (const std::byte byte : frame) {
    raw->socket().send(&byte, 1);
    zero.progress();
  }
  zero.progress_until([&] { return zero.sink.count(Kind::kArrived) == 1; });
  EXPECT_EQ(std::memcmp(landings[3].data(), payload.data(), payload.size()), 0);
}

TEST_F(TcpWire, EndsAtAWrongCheckSum) {
  raw->socket().send(std::string(48, 'x'));
  expect_end("wrong check sum");
}

TEST_F(TcpWire, EndsAtAnUnknownKind) {
  raw->send_frame({.kind = static_cast<FrameKind>(9)}, nullptr, "");
  expect_end("kind 9");
}

TEST_F(TcpWire, EndsAtAControlThatIsTooLong) {
  raw->send_frame({.kind = FrameKind::kControl, .bytes = Endpoint::kMaxControlBytes + 1}, nullptr,
                  "");
  expect_end("4097 bytes");
}

TEST_F(TcpWire, EndsAtASliceWhoseLengthsDiffer) {
  const SliceHeader header = slice(0, 8);
  raw->send_frame({.kind = FrameKind::kSlice, .bytes = 9}, &header, "12345678");
  expect_end("9 bytes");
}

TEST_F(TcpWire, EndsAtAnAcknowledgementOfWhatWasNotSent) {
  raw->send_frame({.kind = FrameKind::kAck, .taken_count = 1}, nullptr, "");
  expect_end("was not sent");
}

TEST_F(TcpWire, EndsAtAFrameThatCameTwice) {
  for (int i = 0; i < 2; ++i) {
    raw->send_frame({.kind = FrameKind::kControl, .bytes = 2}, nullptr, "hi");
  }
  expect_end("came twice");
  EXPECT_EQ(zero.sink.count(Kind::kControl), 1U);
}

TEST_F(TcpWire, EndsWhenTheStreamStopsWithinAFrame) {
  const SliceHeader header = slice(0, 100);
  raw->send_frame({.kind = FrameKind::kSlice, .bytes = 100}, &header, "only these");
  shutdown(raw->socket().fd(), SHUT_WR);
  expect_end("closed");
  EXPECT_EQ(zero.sink.count(Kind::kArrived), 0U);
}

// Frames with a right check sum but otherwise random fields, and plain noise, some of it answered.
TEST(TcpWireNoise, NeverDoesMoreThanEndTheEndpoint) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 generator(seed);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  const auto below = [&](std::uint32_t end) { return random() % end; };
  for (int run = 0; run < 300; ++run) {
    LoneRank zero(0);
    Endpoint* endpoint = zero.connect(1, address_on_lo(1));
    RawRank raw(zero);
    zero.progress_until([&] { return zero.sink.count(Kind::kUp) == 1; });
    std::vector<std::byte> target(1 << 16);
    zero.sink.decide = [&](Endpoint&, const SliceHeader& header) {
      if (header.bytes > target.size() || below(4) == 0) return Landing{Landing::How::kDiscard, {}};
      if (below(4) == 0) return Landing{Landing::How::kLater, nullptr};
      return Landing{Landing::How::kInto, target.data()};
    };
    if (below(2) == 0) (void)endpoint->put(slice(0, 16), target.data(), 1);
    std::uint32_t sequence = 0;
    for (std::uint32_t frame = below(6); frame > 0; --frame) {
      const std::uint32_t size = below(3) == 0 ? random() : below(6000);
      SliceHeader header = slice(random(), below(8) == 0 ? random() : size, random());
      FramePrefix prefix{.kind = static_cast<FrameKind>(1 + below(below(8) == 0 ? 255 : 3)),
                         .flags = static_cast<std::uint8_t>(random()),
                         .sequence = below(8) == 0 ? random() : sequence,
                         .taken_count = below(4) == 0 ? random() : 0,
                         .bytes = size};
      if (prefix.kind == FrameKind::kAck) prefix.bytes = 0;
      if (prefix.kind == FrameKind::kSlice || prefix.kind == FrameKind::kControl) ++sequence;
      raw.send_frame(prefix, prefix.kind == FrameKind::kSlice ? &header : nullptr,
                     std::string(std::min(size, 6000U), 'p'));
    }
    std::string noise(below(500), '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    raw.socket().send(noise);
    shutdown(raw.socket().fd(), SHUT_WR);
    zero.progress_until([&] { return zero.sink.count(Kind::kDown) == 1; });
    for (const auto& breach : zero.sink.breaches()) ADD_FAILURE() << breach;
  }
}

TEST(TcpHandshake, EndsWellBetweenTwoThatKnowTheKey) {
  auto dialer = Handshake::for_dialer(self_of(1), 0, 2, 3, some_nonce(1));
  auto acceptor = Handshake::for_acceptor(self_of(0), some_nonce(2));
  const auto pass = [](Handshake& from, Handshake& to) {
    const std::string message = std::exchange(from.outgoing(), "");
    return to.take({reinterpret_cast<const std::uint8_t*>(message.data()), message.size()});
  };
  ASSERT_TRUE(pass(dialer, acceptor).is_ok());
  ASSERT_TRUE(pass(acceptor, dialer).is_ok());
  ASSERT_TRUE(pass(dialer, acceptor).is_ok());
  EXPECT_EQ(acceptor.state(), Handshake::State::kProven);
  EXPECT_EQ(acceptor.peer(), 1U);
  EXPECT_EQ(acceptor.socket_index(), 2U);
  EXPECT_EQ(acceptor.socket_count(), 3U);
  acceptor.welcome();
  ASSERT_TRUE(pass(acceptor, dialer).is_ok());
  EXPECT_EQ(dialer.state(), Handshake::State::kDone);
  EXPECT_EQ(acceptor.state(), Handshake::State::kDone);
}

// Changes one bit of the exchange at a time: it must fail on at least one end, and no end may be
// done that has not seen an unchanged exchange.
TEST(TcpHandshake, FailsIfAnyBitIsChanged) {
  const std::size_t total_bytes = Handshake::kHelloBytes + 64 + 32 + 32;
  for (std::size_t bit = 0; bit < total_bytes * 8; ++bit) {
    auto dialer = Handshake::for_dialer(self_of(1, 4), 0, 0, 1, some_nonce(1));
    auto acceptor = Handshake::for_acceptor(self_of(0, 4), some_nonce(2));
    std::size_t passed_bits = 0;
    const auto pass = [&](Handshake& from, Handshake& to) {
      std::string message = std::exchange(from.outgoing(), "");
      if (bit >= passed_bits && bit < passed_bits + message.size() * 8) {
        message[(bit - passed_bits) / 8] ^= static_cast<char>(1 << (bit % 8));
      }
      passed_bits += message.size() * 8;
      return to.take({reinterpret_cast<const std::uint8_t*>(message.data()), message.size()});
    };
    bool is_done = pass(dialer, acceptor).is_ok() && pass(acceptor, dialer).is_ok() &&
                   pass(dialer, acceptor).is_ok();
    if (is_done) {
      acceptor.welcome();
      is_done = pass(acceptor, dialer).is_ok();
    }
    EXPECT_FALSE(is_done) << "bit " << bit;
  }
}

TEST(TcpHandshake, TakesNoReflectedProof) {
  auto dialer = Handshake::for_dialer(self_of(1), 0, 0, 1, some_nonce(1));
  // A mirror: it answers with what it can make out of the dialer's own words.
  std::vector<std::uint8_t> answer(64, 0);
  EXPECT_FALSE(dialer.take(answer).is_ok());
}

}  // namespace
}  // namespace polyrail::tcp_test
