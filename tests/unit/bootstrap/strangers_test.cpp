// Strangers at rank 0's door: they neither get in nor get in the way.
#include <poll.h>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/bootstrap/bytes.hpp"
#include "src/bootstrap/reserved.hpp"
#include "tests/unit/bootstrap/support.hpp"

namespace polyrail::test {
namespace {

using bootstrap::Clock;
using testing::HasSubstr;

// Connects as soon as somebody listens there.
FileDescriptor connect_to(const Address& address) {
  while (true) {
    auto socket = bootstrap::start_connecting(address);
    if (!socket.is_ok()) continue;
    std::vector<pollfd> polled = {{socket.value().get(), POLLOUT, 0}};
    bootstrap::poll_until(polled, Clock::now() + std::chrono::seconds(10));
    if (bootstrap::connect_result(socket.value()).is_ok()) return std::move(socket).value();
  }
}

// Waits for the other side to close, throwing away what it says.
void wait_until_closed(const FileDescriptor& socket) {
  std::array<char, 1024> bytes;
  while (true) {
    std::vector<pollfd> polled = {{socket.get(), POLLIN, 0}};
    bootstrap::poll_until(polled, Clock::now() + std::chrono::seconds(60));
    const bootstrap::Moved moved = bootstrap::receive_some(socket, bytes.data(), bytes.size());
    if (moved.has_ended || moved.error != 0) return;
  }
}

class Strangers : public testing::Test {
 protected:
  void SetUp() override {
    auto id = make_unique_id(quick_options());
    ASSERT_TRUE(id.is_ok()) << id.status().message();
    id_ = id.value();
    door_ = addresses_of(id_)[0];
  }
  void TearDown() override { EXPECT_EQ(Holdings(), before_); }

  Joined root(int rank_count, std::int64_t timeout_ms = 60000) {
    return bootstrap::join_as_root(bootstrap::take_sockets(id_),
                                   setup_for(id_, 0, rank_count, timeout_ms, log_->logger()));
  }

  const Holdings before_;
  const std::shared_ptr<LogKeeper> log_ = LogKeeper::make();
  UniqueId id_;
  Address door_;
};

TEST_F(Strangers, AreTurnedAwayWhileTheRanksComeTogether) {
  const std::string hello = bootstrap::make_hello(random_nonce().value());
  const std::string says[] = {
      "GET / HTTP/1.1\r\nHost: rank0\r\n\r\n",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // a TLS client's hello
      "\x7f",
      std::string(100000, '\xb5'),
      hello + std::string(bootstrap::kReplyBytes, 'x'),  // no key
      hello + hello + hello + hello + hello,
  };
  const auto joined = on_threads<Joined>(4, [&](int rank) {
    if (rank == 0) return root(4);
    // Before each rank come strangers of all kinds, and some stay without a word.
    std::vector<FileDescriptor> silent;
    for (int i = 0; i < 67; ++i) silent.push_back(connect_to(door_));
    for (const std::string& text : says) {
      const FileDescriptor socket = connect_to(door_);
      (void)bootstrap::send_some(socket, text);
      wait_until_closed(socket);
    }
    {
      const FileDescriptor half = connect_to(door_);
      (void)bootstrap::send_some(half, std::string_view(hello).substr(0, 20));
    }
    return join(id_, rank, 4, quick_options(60000));
  });
  for (const Joined& rank : joined) ASSERT_TRUE(rank.is_ok()) << rank.status().message();
  on_threads<bool>(4, [&](int rank) {
    const Gathered all = joined[rank].value()->all_gather("after", std::to_string(rank));
    EXPECT_THAT(all.value(), testing::ElementsAre("0", "1", "2", "3"));
    return true;
  });
  EXPECT_GT(log_->count("too many callers"), 0);
  EXPECT_GT(log_->count("does not speak Polyrail"), 0);
  EXPECT_GT(log_->count("does not know the key"), 0);
  EXPECT_LT(log_->lines().size(), 60u);  // some two hundred strangers
  EXPECT_EQ(log_->count(bootstrap::to_hex(bytes_of(id_.key)).substr(0, 8)), 0);
}

TEST_F(Strangers, AreNeverTheRanksThemselves) {
  const auto joined = on_threads<Joined>(16, [&](int rank) {
    return rank == 0 ? root(16) : join(id_, rank, 16, quick_options(60000));
  });
  for (const Joined& rank : joined) EXPECT_TRUE(rank.is_ok()) << rank.status().message();
  EXPECT_EQ(log_->count("stranger"), 0) << "they call at all addresses and keep one connection";
}

TEST_F(Strangers, AreNamedInTheReportWhenARankIsMissing) {
  const auto joined = on_threads<Joined>(2, [&](int i) -> Joined {
    if (i == 0) return root(2, 1000);
    const FileDescriptor socket = connect_to(door_);
    (void)bootstrap::send_some(socket, "SSH-2.0-OpenSSH_9.2\r\n");
    wait_until_closed(socket);
    return ok();
  });
  EXPECT_EQ(joined[0].status().code(), StatusCode::kTimeout);
  EXPECT_THAT(
      joined[0].status().message(),
      testing::AllOf(HasSubstr("rank 1 did not come"), HasSubstr("1 stranger was turned away, "),
                     HasSubstr("does not speak Polyrail's start-up protocol")));
}

TEST_F(Strangers, GiveWayToTheRanksWhenTheyAreTooMany) {
  const auto joined = on_threads<Joined>(2, [&](int rank) {
    if (rank == 0) return root(2);
    std::vector<FileDescriptor> silent;
    for (int i = 0; i < 400; ++i) silent.push_back(connect_to(door_));
    return join(id_, 1, 2, quick_options(60000));
  });
  for (const Joined& rank : joined) EXPECT_TRUE(rank.is_ok()) << rank.status().message();
  EXPECT_GT(log_->count("too many callers"), 0);
}

TEST_F(Strangers, DescriptorLimitIsRaisedWhenTheRanksNeedIt) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low = limit;
  low.rlim_cur = Holdings().descriptor_count + 20;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  {
    const auto joined = join_all(id_, 9, quick_options());
    for (const Joined& rank : joined) EXPECT_TRUE(rank.is_ok()) << rank.status().message();
  }
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_GT(now.rlim_cur, low.rlim_cur);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace
}  // namespace polyrail::test
