// What every rank is told when ranks do not fit together, are missing, or get lost.
#include <poll.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/bootstrap/reserved.hpp"
#include "tests/unit/bootstrap/support.hpp"

namespace polyrail::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Refusal : public testing::Test {
 protected:
  void SetUp() override {
    auto id = make_unique_id(quick_options());
    ASSERT_TRUE(id.is_ok()) << id.status().message();
    id_ = id.value();
  }

  void TearDown() override {
    (void)bootstrap::take_sockets(id_);
    EXPECT_EQ(Holdings(), before_);
  }

  static void expect_all(const std::vector<Joined>& joined, StatusCode code,
                         const testing::Matcher<std::string>& message) {
    for (const Joined& rank : joined) {
      ASSERT_FALSE(rank.is_ok());
      EXPECT_EQ(rank.status().code(), code) << rank.status().message();
      EXPECT_THAT(rank.status().message(), message);
    }
  }

  const Holdings before_;
  UniqueId id_;
};

TEST_F(Refusal, TellsEverybodyOfARankGivenTwice) {
  const int ranks[] = {0, 1, 1, 2};
  const auto joined =
      on_threads<Joined>(4, [&](int i) { return join(id_, ranks[i], 4, quick_options()); });
  expect_all(joined, StatusCode::kInvalidUsage,
             AllOf(HasSubstr("rank 1 was given twice: to host "), HasSubstr(" and to host "),
                   HasSubstr("process " + std::to_string(getpid()))));
}

TEST_F(Refusal, TellsEverybodyWhenTheNumbersOfRanksDiffer) {
  const int counts[] = {3, 3, 4};
  const auto joined = on_threads<Joined>(
      3, [&](int rank) { return join(id_, rank, counts[rank], quick_options()); });
  expect_all(
      joined, StatusCode::kInvalidUsage,
      AllOf(HasSubstr("was started for 3 ranks"), HasSubstr("rank 2 (host "), HasSubstr("for 4")));
}

TEST_F(Refusal, TellsEverybodyWhenVersionsDiffer) {
  for (const bool is_protocol : {false, true}) {
    const auto id = make_unique_id(quick_options());
    const auto joined = on_threads<Joined>(3, [&](int rank) -> Joined {
      if (rank != 2) return join(id.value(), rank, 3, quick_options());
      auto setup = setup_for(id.value(), rank, 3, 30000);
      setup.self.protocol += is_protocol ? 1 : 0;
      setup.self.version += is_protocol ? 0 : 1;
      return bootstrap::join_as_member(addresses_of(id.value()), setup);
    });
    expect_all(joined, StatusCode::kInvalidUsage,
               AllOf(HasSubstr("rank 0 (host "), HasSubstr("rank 2 (host "),
                     HasSubstr("runs Polyrail"), HasSubstr("all ranks need the same Polyrail"),
                     HasSubstr(is_protocol ? "protocol 2" : "0.1.1")));
  }
}

TEST_F(Refusal, NamesARankThatIsOutOfRange) {
  for (int rank : {-1, 4, 1000}) {
    const Joined joined = join(id_, rank, 4, quick_options());
    EXPECT_EQ(joined.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(joined.status().message(),
                HasSubstr("rank " + std::to_string(rank) + " is out of range: of 4 ranks"));
  }
  EXPECT_THAT(join(id_, 0, 0, quick_options()).status().message(), HasSubstr("0 ranks"));
  // One that got past its own check is caught by the root, and everybody hears of it.
  const auto joined = on_threads<Joined>(2, [&](int rank) {
    if (rank == 0) return join(id_, 0, 2, quick_options());
    auto setup = setup_for(id_, 7, 2, 30000);
    return bootstrap::join_as_member(addresses_of(id_), setup);
  });
  expect_all(joined, StatusCode::kInvalidUsage, HasSubstr("rank 7 is out of range: of 2 ranks"));
}

TEST_F(Refusal, TellsThoseWhoCameWhichRanksDidNot) {
  const int ranks[] = {0, 2};
  const auto joined =
      on_threads<Joined>(2, [&](int i) { return join(id_, ranks[i], 4, quick_options(1500)); });
  expect_all(joined, StatusCode::kTimeout,
             AllOf(HasSubstr("ranks 1 and 3 did not come to rank 0 (host "), HasSubstr("1500 ms"),
                   HasSubstr("it listened at " + id_.addresses[0])));
}

TEST_F(Refusal, KeepsTheNearestDeadlineOfAllRanks) {
  const auto joined = on_threads<Joined>(
      2, [&](int rank) { return join(id_, rank, 3, quick_options(rank == 0 ? 1000000 : 1500)); });
  expect_all(joined, StatusCode::kTimeout, HasSubstr("rank 2 did not come"));
}

TEST_F(Refusal, ListsWhatWasTriedWhenNobodyListens) {
  (void)bootstrap::take_sockets(id_);
  const Joined joined = join(id_, 1, 2, quick_options(100));
  EXPECT_EQ(joined.status().code(), StatusCode::kTimeout);
  for (const std::string& address : id_.addresses) {
    EXPECT_THAT(joined.status().message(), HasSubstr(address + ": Connection refused"));
  }
  EXPECT_THAT(joined.status().message(), AllOf(HasSubstr("rank 1 (host "), HasSubstr("100 ms")));
}

TEST_F(Refusal, GivesUpOnAnAddressThatSwallowsEverything) {
  // A listener that nobody serves: the system takes the connection, no answer comes.
  (void)bootstrap::take_sockets(id_);
  const auto mute = bootstrap::bind_socket(addresses_of(id_)[0]);
  ASSERT_TRUE(mute.is_ok() && bootstrap::start_listening(mute.value()).is_ok());
  UniqueId id = id_;
  id.addresses.resize(1);
  const Joined joined = join(id, 1, 2, quick_options(100));
  EXPECT_THAT(joined.status().message(),
              HasSubstr(id.addresses[0] + ": connected, but nobody answered"));
}

TEST_F(Refusal, RefusesASecondRankZero) {
  const auto joined = on_threads<Joined>(2, [&](int i) -> Joined {
    if (i == 0) return join(id_, 0, 2, quick_options());
    // The first rank 0 listens as soon as somebody can connect.
    while (true) {
      const auto probe = bootstrap::start_connecting(addresses_of(id_)[0]);
      if (!probe.is_ok()) continue;
      std::vector<pollfd> polled = {{probe.value().get(), POLLOUT, 0}};
      bootstrap::poll_until(polled, bootstrap::Clock::time_point::max());
      if (bootstrap::connect_result(probe.value()).is_ok()) break;
    }
    const Joined second = join(id_, 0, 2, quick_options());
    EXPECT_EQ(second.status().code(), StatusCode::kInvalidUsage);
    EXPECT_THAT(second.status().message(),
                AllOf(HasSubstr("rank 0 seems to be there already"), HasSubstr(id_.addresses[0]),
                      HasSubstr("Address already in use")));
    return join(id_, 1, 2, quick_options());
  });
  for (const Joined& rank : joined) EXPECT_TRUE(rank.is_ok()) << rank.status().message();
}

TEST_F(Refusal, SaysThatRankZeroIsOnTheWrongHost) {
  UniqueId id = id_;
  id.addresses = {"198.51.100.1:4711"};
  const Joined joined = join(id, 0, 2, quick_options());
  EXPECT_EQ(joined.status().code(), StatusCode::kInvalidUsage);
  EXPECT_THAT(joined.status().message(),
              AllOf(HasSubstr("belongs on the host where the unique id was made"),
                    HasSubstr("bind 198.51.100.1:4711: Cannot assign requested address")));
}

TEST_F(Refusal, RefusesAnIdWithoutProperAddresses) {
  UniqueId id = id_;
  id.addresses = {"somewhere"};
  EXPECT_THAT(join(id, 1, 2, quick_options()).status().message(), HasSubstr("'somewhere'"));
  id.addresses = {};
  EXPECT_THAT(join(id, 1, 2, quick_options()).status().message(), HasSubstr("no address"));
}

TEST_F(Refusal, TellsBothSidesThatTheKeysDiffer) {
  UniqueId other = id_;
  other.key[0] ^= 1;
  const auto joined = on_threads<Joined>(
      2, [&](int rank) { return join(rank == 0 ? id_ : other, rank, 2, quick_options(1500)); });
  for (const Joined& rank : joined) EXPECT_EQ(rank.status().code(), StatusCode::kTimeout);
  EXPECT_THAT(joined[0].status().message(), HasSubstr("rank 1 did not come"));
  EXPECT_THAT(joined[1].status().message(), HasSubstr("a rank 0 of another job answered"));
}

class Gathering : public Refusal {
 protected:
  void start(int rank_count, std::int64_t timeout_ms = 30000) {
    auto joined = join_all(id_, rank_count, quick_options(timeout_ms));
    for (Joined& rank : joined) {
      ASSERT_TRUE(rank.is_ok()) << rank.status().message();
      ranks_.push_back(std::move(rank).value());
    }
  }
  void TearDown() override {
    ranks_.clear();
    Refusal::TearDown();
  }
  // The failure of an all_gather that every rank still there makes.
  std::vector<Status> gather(const std::function<std::string(int)>& phase,
                             const std::function<std::string(int)>& message) {
    return on_threads<Status>(static_cast<int>(ranks_.size()), [&](int rank) {
      if (ranks_[rank] == nullptr) return ok();
      const Status status = ranks_[rank]->all_gather(phase(rank), message(rank)).status();
      // Nothing works after a failure.
      EXPECT_EQ(ranks_[rank]->all_gather("next", "").status(), status);
      return status;
    });
  }
  void expect_failure(const std::vector<Status>& statuses, StatusCode code,
                      const testing::Matcher<std::string>& message) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank] == nullptr) continue;
      EXPECT_EQ(statuses[rank].code(), code) << statuses[rank].message();
      EXPECT_THAT(statuses[rank].message(), message);
    }
  }

  std::vector<std::unique_ptr<Bootstrap>> ranks_;
};

std::string rails(int) {
  return "rails";
}
std::string nothing(int) {
  return "";
}

TEST_F(Gathering, NamesALostRankAtOnce) {
  start(4);
  ranks_[2].reset();
  expect_failure(gather(rails, nothing), StatusCode::kRemoteError,
                 AllOf(HasSubstr("phase 'rails': rank 2 (host "), HasSubstr("was lost")));
}

TEST_F(Gathering, NamesALostRankZero) {
  start(3);
  ranks_[0].reset();
  expect_failure(gather(rails, nothing), StatusCode::kRemoteError,
                 AllOf(HasSubstr("phase 'rails': rank 0 (host "), HasSubstr("was lost")));
}

TEST_F(Gathering, TellsAllWhoIsMissingAtTheDeadline) {
  start(4, 1500);
  const auto absent = std::move(ranks_[1]);
  expect_failure(gather(rails, nothing), StatusCode::kTimeout,
                 AllOf(HasSubstr("phase 'rails': rank 1 (host "), HasSubstr("1500 ms")));
}

TEST_F(Gathering, SaysThatRankZeroDidNotComeOrAnswer) {
  start(2, 100);
  const auto absent = std::move(ranks_[0]);
  expect_failure(gather(rails, nothing), StatusCode::kTimeout,
                 AllOf(HasSubstr("phase 'rails': rank 0 (host "), HasSubstr("did not answer")));
  // Rank 0 learns afterwards why.
  EXPECT_THAT(absent->all_gather("rails", "").status().message(),
              AllOf(HasSubstr("rank 1 (host "), HasSubstr("did not answer within 100 ms")));
}

TEST_F(Gathering, ShowsBothPhasesWhenRanksAreInDifferentOnes) {
  start(3);
  expect_failure(gather([](int rank) { return rank == 1 ? "calibration" : "rails"; }, nothing),
                 StatusCode::kInvalidUsage,
                 AllOf(HasSubstr("rank 0 (host "), HasSubstr("'rails'"), HasSubstr("rank 1 (host "),
                       HasSubstr("'calibration'")));
}

TEST_F(Gathering, TellsAllWhoseMessageIsTooLong) {
  for (int culprit : {0, 1}) {
    auto id = make_unique_id(quick_options());
    ranks_.clear();
    (void)bootstrap::take_sockets(id_);
    id_ = id.value();
    start(3);
    expect_failure(gather(rails,
                          [&](int rank) {
                            return std::string((std::size_t{16} << 20) + (rank == culprit), 'x');
                          }),
                   StatusCode::kInvalidArgument,
                   AllOf(HasSubstr("rank " + std::to_string(culprit)), HasSubstr("16777217"),
                         HasSubstr("16777216 are allowed")));
  }
}

}  // namespace
}  // namespace polyrail::test
