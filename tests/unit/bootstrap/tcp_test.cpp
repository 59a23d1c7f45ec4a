// make_unique_id and join over TCP, with ranks as threads.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/address.hpp"
#include "src/bootstrap/setup.hpp"
#include "tests/unit/bootstrap/support.hpp"

namespace polyrail::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class TcpBootstrap : public testing::Test {
 protected:
  void SetUp() override {
    auto id = make_unique_id(quick_options());
    ASSERT_TRUE(id.is_ok()) << id.status().message();
    id_ = id.value();
  }

  UniqueId id_;
};

TEST_F(TcpBootstrap, GathersManyRoundsByRank) {
  for (int rank_count : {1, 2, 3, 9, 64}) {
    const auto id = make_unique_id(quick_options());
    ASSERT_TRUE(id.is_ok());
    on_threads<bool>(rank_count, [&](int rank) {
      const Joined joined = join(id.value(), rank, rank_count, quick_options());
      EXPECT_TRUE(joined.is_ok()) << joined.status().message();
      if (!joined.is_ok()) return false;
      Bootstrap& bootstrap = *joined.value();
      EXPECT_EQ(bootstrap.rank(), rank);
      EXPECT_EQ(bootstrap.rank_count(), rank_count);
      EXPECT_EQ(bootstrap.key(), id.value().key);
      for (int round = 0; round < 10; ++round) {
        const char letter = static_cast<char>('a' + round);
        const Gathered all =
            bootstrap.all_gather("round " + std::to_string(round), std::string(rank, letter));
        EXPECT_TRUE(all.is_ok()) << all.status().message();
        if (!all.is_ok()) return false;
        EXPECT_EQ(all.value().size(), static_cast<std::size_t>(rank_count));
        for (int other = 0; other < rank_count; ++other) {
          EXPECT_EQ(all.value()[other], std::string(other, letter));
        }
      }
      return true;
    });
  }
}

TEST_F(TcpBootstrap, GathersTheLongestMessages) {
  on_threads<bool>(3, [&](int rank) {
    const Joined joined = join(id_, rank, 3, quick_options());
    EXPECT_TRUE(joined.is_ok()) << joined.status().message();
    const std::string message(rank == 1 ? 0 : std::size_t{16} << 20, static_cast<char>('a' + rank));
    const Gathered all = joined.value()->all_gather("long", message);
    EXPECT_TRUE(all.is_ok()) << all.status().message();
    if (!all.is_ok()) return false;
    EXPECT_TRUE(all.value()[0] == std::string(std::size_t{16} << 20, 'a'));
    EXPECT_TRUE(all.value()[1].empty());
    EXPECT_TRUE(all.value()[2] == std::string(std::size_t{16} << 20, 'c'));
    return true;
  });
}

TEST_F(TcpBootstrap, LeavesNothingOpen) {
  const Holdings before;
  for (int i = 0; i < 3; ++i) {
    const auto id = make_unique_id(quick_options());
    ASSERT_TRUE(id.is_ok());
    const auto joined = join_all(id.value(), 4, quick_options());
    for (const Joined& rank : joined) ASSERT_TRUE(rank.is_ok()) << rank.status().message();
  }
  EXPECT_EQ(Holdings(), before);
}

TEST_F(TcpBootstrap, OffersLoopbackOnlyIfThereIsNothingElse) {
  bool has_loopback = false;
  bool has_other = false;
  for (const std::string& text : id_.addresses) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address.is_ok()) << text;
    EXPECT_NE(address.value().port, 0);
    EXPECT_FALSE(address.value().ip.is_any());
    (address.value().ip.is_loopback() ? has_loopback : has_other) = true;
  }
  EXPECT_NE(has_loopback, has_other);
}

TEST_F(TcpBootstrap, ObeysTheOptionInterfaces) {
  Options options = quick_options();
  options.interfaces = "127.0.0.0/8";
  const auto id = make_unique_id(options);
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  ASSERT_EQ(id.value().addresses.size(), 1u);
  EXPECT_THAT(id.value().addresses[0], testing::StartsWith("127.0.0.1:"));
  for (const Joined& rank : join_all(id.value(), 2, options)) EXPECT_TRUE(rank.is_ok());

  options.interfaces = "nosuchinterface";
  const Status status = make_unique_id(options).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("nosuchinterface"), HasSubstr("lo 127.0.0.1")));
}

TEST_F(TcpBootstrap, LetsRankZeroComeLast) {
  const auto log = LogKeeper::make();
  const auto joined = on_threads<Joined>(3, [&](int rank) {
    if (rank == 0) {
      while (log->count("refused") < 4) std::this_thread::yield();
      return join(id_, 0, 3, quick_options());
    }
    return bootstrap::join_as_member(addresses_of(id_),
                                     setup_for(id_, rank, 3, 30000, log->logger()));
  });
  for (const Joined& rank : joined) EXPECT_TRUE(rank.is_ok()) << rank.status().message();
}

}  // namespace
}  // namespace polyrail::test
