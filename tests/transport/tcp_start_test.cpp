// How ranks meet over tcp, and what happens to those who should not.
#include <spdlog/sinks/ostream_sink.h>

#include <filesystem>
#include <sstream>

#include "tests/transport/tcp_support.hpp"
#include "transports/tcp/greeter.hpp"
#include "transports/tcp/socket.hpp"

namespace polyrail::tcp_test {
namespace {

std::size_t open_descriptor_count() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

tcp::Listener listen_on_lo() {
  auto listener = tcp::listen_at({"lo", tcp::SocketAddress::parse("127.0.0.1", "lo").value()});
  EXPECT_TRUE(listener.is_ok()) << listener.status().message();
  return std::move(listener.value());
}

std::string reason_of(const RecordingSink& sink) {
  const auto downs = sink.events(Kind::kDown);
  return downs.empty() ? "" : downs.front().text;
}

void expect_mentions(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
  }
}

// Two honest ranks meet, whatever else goes on at rank 0.
void expect_to_meet(LoneRank& zero, LoneRank& one) {
  zero.connect(1, one.transport->address());
  one.connect(0, zero.transport->address());
  zero.progress_until([&] {
    one.progress();
    return zero.sink.count(Kind::kUp) + zero.sink.count(Kind::kDown) == 1 &&
           one.sink.count(Kind::kUp) + one.sink.count(Kind::kDown) == 1;
  });
  EXPECT_EQ(zero.sink.count(Kind::kUp), 1U) << reason_of(zero.sink);
  EXPECT_EQ(one.sink.count(Kind::kUp), 1U) << reason_of(one.sink);
}

TEST(TcpStart, JoinsThreeRanksEachWithEach) {
  for (const int sockets : {1, 4}) {
    RankHarness ranks(open_lo(with_sockets(sockets)), 3);
    ranks.connect_until_up();
    ranks.expect_no_breaches();
  }
}

TEST(TcpStart, LetsRanksDifferInTheNumberOfSockets) {
  const auto open = [](const TransportContext& context) {
    return open_lo(with_sockets(context.rank + 1))(context);
  };
  RankHarness ranks(open, 3);
  ranks.connect_until_up();
}

TEST(TcpStart, WaitsForAPeerThatCallsConnectLater) {
  LoneRank zero(0), one(1);
  one.connect(0, zero.transport->address());
  for (int i = 0; i < 1000; ++i) {
    zero.progress();
    one.progress();
  }
  EXPECT_EQ(one.sink.count(Kind::kUp), 0U);
  zero.connect(1, one.transport->address());
  zero.progress_until([&] {
    one.progress();
    return zero.sink.count(Kind::kUp) == 1 && one.sink.count(Kind::kUp) == 1;
  });
}

TEST(TcpStart, SaysWhoDoesNotListen) {
  std::uint16_t port = 0;
  { port = listen_on_lo().address.port(); }
  LoneRank one(1);
  one.connect(0, address_on_lo(port));
  one.progress_until([&] { return one.sink.count(Kind::kDown) == 1; });
  expect_mentions(reason_of(one.sink),
                  {"rail lo", "rank 0", "127.0.0.1 (lo) -> 127.0.0.1:" + std::to_string(port),
                   "Connection refused"});
}

TEST(TcpStart, SaysWhoDidNotAnswerInTime) {
  const tcp::Listener silent = listen_on_lo();
  LoneRank one(1, 2, 30);
  one.connect(0, address_on_lo(silent.address.port()));
  one.progress_until([&] { return one.sink.count(Kind::kDown) == 1; });
  expect_mentions(reason_of(one.sink), {"rank 0", "no answer within 30 ms", silent.address.text()});
}

TEST(TcpStart, SaysWhoDidNotDialInTime) {
  LoneRank zero(0, 2, 30);
  zero.connect(1, address_on_lo(1));
  // Asleep all the while: the deadline itself must wake the sleeper.
  zero.own.run_asleep([&] { return zero.sink.count(Kind::kDown) == 1; });
  expect_mentions(reason_of(zero.sink), {"rank 1", "did not dial", "within 30 ms", "(lo)"});
}

TEST(TcpStart, DialsAgainWhenItIsHungUpOn) {
  tcp::Listener hanging = listen_on_lo();
  LoneRank one(1);
  one.connect(0, address_on_lo(hanging.address.port()));
  for (int calls = 0; calls < 3;) {
    one.progress();
    const int fd = accept(hanging.fd.get(), nullptr, nullptr);
    if (fd < 0) continue;
    ++calls;
    close(fd);
  }
  EXPECT_EQ(one.sink.count(Kind::kDown), 0U);
}

TEST(TcpStart, RefusesAddressesThatCannotBeRight) {
  LoneRank zero(0, 3);
  tcp::RailAddress address = tcp::RailAddress::from_bytes(address_on_lo(4711)).value();
  const auto refusal = [&](int peer, const std::string& bytes) {
    const auto result = zero.transport->connect(peer, bytes);
    EXPECT_FALSE(result.is_ok());
    return result.status().message();
  };
  expect_mentions(refusal(1, ""), {"rank 1", "not the address of a tcp rail"});
  expect_mentions(refusal(1, std::string(27, 'x')), {"not the address of a tcp rail"});
  std::string truncated = address.to_bytes();
  truncated.pop_back();
  expect_mentions(refusal(1, truncated), {"not the address of a tcp rail"});
  expect_mentions(refusal(0, address.to_bytes()), {"no such peer"});
  expect_mentions(refusal(3, address.to_bytes()), {"no such peer"});
  address.host[0] ^= 1;
  expect_mentions(refusal(1, address.to_bytes()), {"loopback", "different hosts"});
  address.socket = tcp::SocketAddress::parse("::1", "lo").value();
  address.socket.set_port(4711);
  expect_mentions(refusal(1, address.to_bytes()), {"families"});
  // None of them counted as the one call for that peer.
  EXPECT_NE(zero.connect(1, address_on_lo(4711)), nullptr);
  EXPECT_FALSE(zero.transport->connect(1, address_on_lo(4711)).is_ok());
}

TEST(TcpStart, FailsToOpenWhatIsNotThere) {
  TransportContext context;
  context.key = kKey;
  Rail rail = lo_rail();
  rail.address = "198.51.100.7";  // an address for documentation
  auto opened = open_tcp(rail, context, {}, silent_logger());
  ASSERT_FALSE(opened.is_ok());
  expect_mentions(opened.status().message(), {"rail lo", "198.51.100.7", "lo"});
  rail.address = "nonsense";
  opened = open_tcp(rail, context, {}, silent_logger());
  ASSERT_FALSE(opened.is_ok());
  expect_mentions(opened.status().message(), {"nonsense"});
  context.key = "short";
  opened = open_tcp(lo_rail(), context, {}, silent_logger());
  ASSERT_FALSE(opened.is_ok());
  expect_mentions(opened.status().message(), {"5 bytes instead of 32"});
}

TEST(TcpStart, EndsAtOnceWhenThePeerHasAnotherKey) {
  LoneRank zero(0), one(1, 2, 60000, silent_logger(), std::string(32, 'w'));
  zero.connect(1, one.transport->address());
  one.connect(0, zero.transport->address());
  one.progress_until([&] {
    zero.progress();
    return one.sink.count(Kind::kDown) == 1;
  });
  expect_mentions(reason_of(one.sink), {"rank 0", "does not know the key"});
  EXPECT_EQ(zero.sink.count(Kind::kUp), 0U);
}

TEST(TcpStart, IsNotHarmedByStrangers) {
  LoneRank zero(0), one(1);
  const tcp::SocketAddress door = zero.listens_at();
  const auto progress_until_closed = [&](RawSocket& stranger) {
    zero.progress_until([&] { return stranger.is_closed(); });
  };
  RawSocket garbage(door);
  garbage.send(std::string(5000, 'G'));
  progress_until_closed(garbage);

  auto other_rank = tcp::Handshake::for_dialer(self_of(5, 9), 0, 0, 1, some_nonce(1));
  RawSocket wrong_rank(door);
  wrong_rank.send(other_rank.outgoing());
  progress_until_closed(wrong_rank);

  auto for_other = tcp::Handshake::for_dialer(self_of(1), 1, 0, 1, some_nonce(1));
  RawSocket wrong_target(door);
  wrong_target.send(for_other.outgoing());
  progress_until_closed(wrong_target);

  auto other_key =
      tcp::Handshake::for_dialer(self_of(1, 2, std::string(32, 'w')), 0, 0, 1, some_nonce(1));
  RawSocket wrong_key(door);
  wrong_key.send(other_key.outgoing());
  wrong_key.receive(64, zero);
  wrong_key.send(std::string(32, 'p'));
  progress_until_closed(wrong_key);

  RawSocket half(door);
  half.send(std::string_view(other_key.outgoing()).substr(0, 30));
  RawSocket gone(door);
  gone.send(std::string_view(other_key.outgoing()).substr(0, 60));
  { RawSocket brief(door); }

  expect_to_meet(zero, one);
}

TEST(TcpStart, AcceptsNoReplayedHandshake) {
  LoneRank zero(0), one(1);
  auto honest = tcp::Handshake::for_dialer(self_of(1), 0, 0, 1, some_nonce(2));
  const std::string hello = honest.outgoing();
  honest.outgoing().clear();
  RawSocket first(zero.listens_at());
  first.send(hello);
  ASSERT_TRUE(honest.take(first.receive(64, zero)).is_ok());
  const std::string proof = honest.outgoing();
  first.send(proof);

  RawSocket replayed(zero.listens_at());
  replayed.send(hello);
  replayed.receive(64, zero);
  replayed.send(proof);  // over the nonce of the first socket
  zero.progress_until([&] { return replayed.is_closed(); });
  // The honest one is held until rank 0 wants to meet its peer, which then comes from elsewhere.
  EXPECT_FALSE(first.is_closed());
}

TEST(TcpStart, LetsAPeerInThroughACrowdOfSilentStrangers) {
  std::ostringstream text;
  auto log = std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
  LoneRank zero(0, 2, 60000, log), one(1);
  std::vector<std::unique_ptr<RawSocket>> crowd;
  for (std::size_t i = 0; i < tcp::Greeter::kMaxStrangers + 40; ++i) {
    crowd.push_back(std::make_unique<RawSocket>(zero.listens_at()));
    if (i % 10 == 0) zero.progress();
  }
  expect_to_meet(zero, one);
  std::size_t closed = 0;
  for (const auto& stranger : crowd) closed += stranger->is_closed() ? 1 : 0;
  EXPECT_GE(closed, 40U);
  const std::string lines = text.str();
  EXPECT_LE(std::count(lines.begin(), lines.end(), '\n'), 4) << lines;
  expect_mentions(lines, {"dropped a socket from 127.0.0.1:"});
}

TEST(TcpStart, DropsASecondSocketOfAPeerThatIsUp) {
  LoneRank zero(0), one(1);
  expect_to_meet(zero, one);
  auto again = tcp::Handshake::for_dialer(self_of(1), 0, 0, 1, some_nonce(3));
  RawSocket second(zero.listens_at());
  second.send(again.outgoing());
  again.outgoing().clear();
  ASSERT_TRUE(again.take(second.receive(64, zero)).is_ok());
  second.send(again.outgoing());
  for (int i = 0; i < 1000; ++i) zero.progress();
  EXPECT_EQ(zero.sink.count(Kind::kDown), 0U);
  zero.transport.reset();
  EXPECT_TRUE(second.is_closed());
}

TEST(TcpStart, LeavesNoDescriptorBehind) {
  const std::size_t before = open_descriptor_count();
  {
    RankHarness ranks(open_lo(with_sockets(3)), 3);
    ranks.connect_until_up();
    ranks[2].transport.reset();
    ranks.progress_until([&] { return ranks[0].sink.count(Kind::kDown) == 1; });
  }
  {
    LoneRank zero(0), one(1, 2, 60000, silent_logger(), std::string(32, 'w'));
    RawSocket stranger(zero.listens_at());
    zero.connect(1, one.transport->address());
    one.connect(0, zero.transport->address());
    one.progress_until([&] {
      zero.progress();
      return one.sink.count(Kind::kDown) == 1;
    });
  }
  {
    LoneRank under_way(1);
    under_way.connect(0, address_on_lo(listen_on_lo().address.port()));
  }
  EXPECT_EQ(open_descriptor_count(), before);
}

}  // namespace
}  // namespace polyrail::tcp_test
