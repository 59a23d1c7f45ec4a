// Joining with what a launcher says, given as values.
#include <poll.h>

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/bootstrap/environment.hpp"
#include "tests/unit/bootstrap/support.hpp"

namespace polyrail::test {
namespace {

using bootstrap::Launch;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kDigits = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";

class Environment : public testing::Test {
 protected:
  Result<Launch> read() const {
    return bootstrap::read_launch([&](const char* name) {
      const auto entry = variables_.find(name);
      return entry == variables_.end() ? nullptr : entry->second.c_str();
    });
  }
  std::string failure() const {
    const Status status = read().status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  }

  std::map<std::string, std::string> variables_ = {
      {"RANK", "3"},           {"WORLD_SIZE", "4"},      {"LOCAL_RANK", "1"},
      {"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}, {"POLYRAIL_KEY", kDigits}};
};

TEST_F(Environment, IsReadAsTorchrunWritesIt) {
  const Result<Launch> launch = read();
  ASSERT_TRUE(launch.is_ok()) << launch.status().message();
  EXPECT_EQ(launch.value().rank, 3);
  EXPECT_EQ(launch.value().rank_count, 4);
  EXPECT_EQ(launch.value().master_host, "head");
  EXPECT_EQ(launch.value().master_port, 29500);
  EXPECT_EQ(launch.value().key[1], 0x11);
  EXPECT_EQ(launch.value().key[31], 0xff);
}

TEST_F(Environment, NamesAVariableThatIsMissing) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "POLYRAIL_KEY"}) {
    auto all = variables_;
    variables_.erase(name);
    EXPECT_THAT(failure(), HasSubstr(std::string(name) + " is not set"));
    variables_[name] = "";
    EXPECT_THAT(failure(), HasSubstr(std::string(name) + " is not set"));
    variables_ = all;
  }
  variables_.erase("LOCAL_RANK");
  EXPECT_TRUE(read().is_ok());
}

TEST_F(Environment, NamesAValueThatCannotBe) {
  const std::pair<const char*, const char*> cases[] = {
      {"RANK", "4"},         {"RANK", "-1"},          {"RANK", "1x"},        {"WORLD_SIZE", "0"},
      {"WORLD_SIZE", "two"}, {"LOCAL_RANK", "4"},     {"LOCAL_RANK", "one"}, {"MASTER_PORT", "0"},
      {"MASTER_PORT", "x"},  {"MASTER_PORT", "65536"}};
  for (const auto& [name, value] : cases) {
    auto all = variables_;
    variables_[name] = value;
    EXPECT_THAT(failure(), HasSubstr(std::string(name) + "='" + value + "' is not an integer"));
    variables_ = all;
  }
}

TEST_F(Environment, ShowsHowToMakeAKeyAndNeverShowsOne) {
  variables_.erase("POLYRAIL_KEY");
  const std::string message = failure();
  EXPECT_THAT(message, HasSubstr("export POLYRAIL_KEY=$("));
  // The command that is shown works in a plain shell.
  const std::size_t from = message.find("export ");
  const std::string command =
      message.substr(from, message.find('\n', from) - from) + "; printf %s \"$POLYRAIL_KEY\"";
  FILE* shell = popen(command.c_str(), "r");
  ASSERT_NE(shell, nullptr);
  char digits[100] = "";
  ASSERT_EQ(std::fread(digits, 1, sizeof(digits), shell), 64u);
  EXPECT_EQ(pclose(shell), 0);
  variables_["POLYRAIL_KEY"] = std::string(digits, 64);
  EXPECT_TRUE(read().is_ok());

  for (const std::string& bad : {std::string(digits, 63), std::string(digits, 64) + "00",
                                 "zz" + std::string(digits + 2, 62)}) {
    variables_["POLYRAIL_KEY"] = bad;
    EXPECT_THAT(failure(), AllOf(HasSubstr("is not 64 hexadecimal digits"),
                                 Not(HasSubstr(bad.substr(2, 16)))));
  }
}

TEST_F(Environment, MayHoldAUniqueIdInstead) {
  const UniqueId id = make_unique_id(quick_options()).value();
  variables_ = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"POLYRAIL_UNIQUE_ID", id.to_text().value()}};
  ASSERT_TRUE(read().is_ok());
  EXPECT_EQ(read().value().unique_id, id);
  const auto joined = on_threads<Joined>(2, [&](int rank) {
    Launch launch = read().value();
    launch.rank = rank;
    return bootstrap::join_launched(launch, quick_options());
  });
  for (const Joined& rank : joined) EXPECT_TRUE(rank.is_ok()) << rank.status().message();
  variables_["POLYRAIL_UNIQUE_ID"].resize(50);
  EXPECT_THAT(failure(), HasSubstr("POLYRAIL_UNIQUE_ID: unique id: cut off"));
}

// A port that is free now. Rank 0 tries eight more behind it, so that a clash does no harm.
std::uint16_t free_port() {
  const auto probe = bootstrap::bind_socket({parse_ip("127.0.0.1").value(), 0});
  return std::min<std::uint16_t>(probe.value().address.port, 65500);
}

Launch launch_for(int rank, int rank_count, const std::string& host, std::uint16_t port) {
  Launch launch;
  launch.rank = rank;
  launch.rank_count = rank_count;
  launch.master_host = host;
  launch.master_port = port;
  launch.key.fill(7);
  return launch;
}

std::vector<Joined> join_launched(int rank_count, const std::string& host, std::uint16_t port) {
  return on_threads<Joined>(rank_count, [&](int rank) {
    return bootstrap::join_launched(launch_for(rank, rank_count, host, port), quick_options());
  });
}

std::string own_name() {
  return bootstrap::own_claim(0, 1).host;
}

TEST(MasterAddress, JoinsByNameNumberAndOwnName) {
  const Holdings before;
  for (const std::string& host : {std::string("localhost"), std::string("127.0.0.1"), own_name()}) {
    const auto joined = join_launched(3, host, free_port());
    for (const Joined& rank : joined) ASSERT_TRUE(rank.is_ok()) << rank.status().message();
    const auto gathered = on_threads<bool>(3, [&](int rank) {
      return joined[rank].value()->all_gather("x", std::to_string(rank)).is_ok();
    });
    EXPECT_THAT(gathered, testing::Each(true));
  }
  EXPECT_EQ(Holdings(), before);
}

TEST(MasterAddress, NeedsNoNetworkForOneRank) {
  const auto joined =
      bootstrap::join_launched(launch_for(0, 1, "no-such-host.invalid", 1), quick_options());
  ASSERT_TRUE(joined.is_ok());
  EXPECT_EQ(joined.value()->all_gather("x", "y").value(), std::vector<std::string>{"y"});
}

TEST(MasterAddress, MovesOnWhenTheLauncherSitsAtTheMasterPort) {
  // Like torchrun's own store: takes connections, and does not answer in our language.
  const std::uint16_t port = free_port();
  const auto store = bootstrap::bind_socket({parse_ip("127.0.0.1").value(), port});
  ASSERT_TRUE(store.is_ok()) << store.status().message();
  ASSERT_TRUE(bootstrap::start_listening(store.value()).is_ok());
  const auto joined = join_launched(3, "127.0.0.1", port);
  for (const Joined& rank : joined) EXPECT_TRUE(rank.is_ok()) << rank.status().message();
}

TEST(MasterAddress, KeepsJobsOfNeighbouringPortsApart) {
  // Both jobs have the same key, and each finds the other's rank 0 among the ports it tries.
  const std::uint16_t port = free_port();
  const auto joined = on_threads<Joined>(4, [&](int i) {
    const auto own = static_cast<std::uint16_t>(port + i / 2);
    return bootstrap::join_launched(launch_for(i % 2, 2, "127.0.0.1", own), quick_options());
  });
  for (const Joined& rank : joined) ASSERT_TRUE(rank.is_ok()) << rank.status().message();
  EXPECT_EQ(joined[0].value()->key(), joined[1].value()->key());
  EXPECT_NE(joined[0].value()->key(), joined[2].value()->key());
}

TEST(MasterAddress, SaysThatRankZeroIsNotThere) {
  const auto joined =
      bootstrap::join_launched(launch_for(0, 2, "198.51.100.1", 4711), quick_options());
  EXPECT_THAT(joined.status().message(),
              AllOf(HasSubstr("rank 0 runs here, but MASTER_ADDR='198.51.100.1'"),
                    HasSubstr("is not this host")));
  for (const char* any : {"0.0.0.0", "::"}) {
    EXPECT_THAT(
        bootstrap::join_launched(launch_for(0, 2, any, 4711), quick_options()).status().message(),
        HasSubstr("is no address of one host"));
  }
}

TEST(MasterAddress, ListsThePortsThatWereTried) {
  const std::uint16_t port = free_port();
  const auto joined =
      bootstrap::join_launched(launch_for(1, 2, "127.0.0.1", port), quick_options(100));
  EXPECT_EQ(joined.status().code(), StatusCode::kTimeout);
  EXPECT_THAT(joined.status().message(),
              HasSubstr("127.0.0.1:" + std::to_string(port) + " to " + std::to_string(port + 8) +
                        ": Connection refused"));
}

TEST(MasterAddress, NamesAnUnknownHost) {
  const auto joined =
      bootstrap::join_launched(launch_for(1, 2, "no-such-host.invalid", 4711), quick_options(50));
  EXPECT_EQ(joined.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(joined.status().message(), HasSubstr("MASTER_ADDR='no-such-host.invalid' is no"));
}

}  // namespace
}  // namespace polyrail::test
