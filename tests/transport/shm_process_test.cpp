// The shm transport between processes: forked, executed, killed.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <polyrail/communicator.hpp>

#include "tests/transport/shm_support.hpp"

namespace polyrail::testing {
namespace {

using Kind = RecordingSink::Kind;

// The n-th slice that each rank sends to the other, the same in both processes.
struct Sent {
  Source source;
  Landing::How how;
  int later_count;
  std::uint32_t bytes;
};

std::vector<Sent> script() {
  std::vector<Sent> all;
  constexpr std::uint32_t kSizes[] = {0, 1, 24, 25, 4096, 8192, 8193, 70'001, 1'048'577, 5'000'003};
  for (const Source source : {Source::kOrdinary, Source::kShared}) {
    for (const auto how : {Landing::How::kInto, Landing::How::kStream, Landing::How::kDiscard}) {
      for (const std::uint32_t bytes : kSizes) {
        all.push_back({source, how, static_cast<int>(all.size() % 3), bytes});
      }
    }
  }
  return all;
}

// Sends the script and receives the peer's, asleep when there is nothing to do.
void play(HarnessRank& own, int rank) {
  const std::vector<Sent> sent = script();
  std::vector<std::unique_ptr<Payload>> payloads;
  std::vector<std::vector<std::byte>> targets;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    payloads.push_back(std::make_unique<Payload>(sent[i].source, sent[i].bytes, i + rank * 1000));
    targets.emplace_back(sent[i].bytes);
  }
  std::vector<int> asked_count(sent.size());
  own.sink.decide = [&](Endpoint&, const SliceHeader& header) {
    const Sent& slice = sent.at(header.signal);
    if (asked_count[header.signal]++ < slice.later_count) return Landing();
    return Landing{slice.how, targets[header.signal].data()};
  };
  std::size_t posted = 0;
  // What was answered kLater is asked for again only by progress(), not by waking up.
  while (own.sink.count(Kind::kArrived) < sent.size() ||
         own.sink.count(Kind::kAcknowledged) < sent.size()) {
    while (posted < sent.size()) {
      SliceHeader header;
      header.signal = static_cast<std::uint32_t>(posted);
      header.bytes = sent[posted].bytes;
      if (own.endpoints[1 - rank]->put(header, payloads[posted]->data(), posted) == Posted::kBusy) {
        break;
      }
      ++posted;
    }
    own.progress();
    ASSERT_EQ(own.sink.count(Kind::kDown), 0u) << own.sink.events().back().text;
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const bool is_discarded = sent[i].how == Landing::How::kDiscard;
    if (!is_discarded) expect_payload(targets[i], static_cast<unsigned>(i + (1 - rank) * 1000));
  }
  std::size_t next = 0;
  for (const auto& event : own.sink.events(Kind::kAcknowledged)) {
    EXPECT_EQ(event.cookie, next);
    EXPECT_EQ(event.was_stalled, sent[next].later_count > 0) << next;
    ++next;
  }
  EXPECT_TRUE(own.sink.breaches().empty());
}

// Both stay, and make progress, until the other has seen everything.
void part(HarnessRank& own, const Wire& wire) {
  wire.send("done");
  while (!wire.has_message()) own.progress();
  EXPECT_EQ(wire.receive(), "done");
}

void be_rank_one(const Wire& wire) {
  const auto own = join_over(wire, 1);
  play(*own, 1);
  part(*own, wire);
}

TEST(ShmProcesses, ExchangeEveryKindOfSliceAfterFork) {
  const auto other = OtherProcess::fork(be_rank_one);
  const auto own = join_over(other->wire(), 0);
  play(*own, 0);
  part(*own, other->wire());
  EXPECT_EQ(other->join(), 0);
}

TEST(ShmProcesses, ExchangeEveryKindOfSliceAfterExec) {
  const auto other = OtherProcess::execute("ShmProcesses.DISABLED_OtherRank");
  const auto own = join_over(other->wire(), 0);
  play(*own, 0);
  part(*own, other->wire());
  EXPECT_EQ(other->join(), 0);
}

// Not a test of its own: the other side of the one above.
TEST(ShmProcesses, DISABLED_OtherRank) {
  be_rank_one(OtherProcess::wire_from_environment());
}

TEST(ShmProcesses, SleepThroughAPingPong) {
  constexpr std::uint32_t kRounds = 2000;
  const auto play_ball = [](HarnessRank& own, int rank) {
    std::uint32_t sent = 0;
    const std::byte ball{1};
    own.run_asleep([&] {
      const auto arrived = own.sink.count(Kind::kArrived);
      SliceHeader header;
      header.bytes = 1;
      const bool is_my_turn = sent < kRounds && sent < arrived + (rank == 0 ? 1 : 0);
      if (is_my_turn && own.endpoints[1 - rank]->put(header, &ball, 0) != Posted::kBusy) ++sent;
      return arrived == kRounds && own.sink.count(Kind::kAcknowledged) == kRounds;
    });
  };
  const auto other = OtherProcess::fork([&](const Wire& wire) {
    const auto own = join_over(wire, 1);
    play_ball(*own, 1);
    part(*own, wire);
  });
  const auto own = join_over(other->wire(), 0);
  play_ball(*own, 0);
  part(*own, other->wire());
  EXPECT_EQ(other->join(), 0);
}

void wait_for_down(HarnessRank& own) {
  own.run_asleep([&] { return own.sink.count(Kind::kDown) == 1; });
  EXPECT_NE(own.sink.events(Kind::kDown).front().text.find("process"), std::string::npos)
      << own.sink.events(Kind::kDown).front().text;
  EXPECT_EQ(own.endpoints[1]->state(), EndpointState::kDown);
  EXPECT_EQ(own.endpoints[1]->put(SliceHeader(), nullptr, 0), Posted::kBusy);
  EXPECT_FALSE(own.progress());
}

TEST(ShmProcesses, NoticeThatAnIdlePeerWasKilled) {
  const auto other = OtherProcess::fork([](const Wire& wire) {
    const auto own = join_over(wire, 1);
    wire.send("up");
    wire.receive();
  });
  const auto own = join_over(other->wire(), 0);
  ASSERT_EQ(other->wire().receive(), "up");
  other->kill();
  wait_for_down(*own);
}

TEST(ShmProcesses, NoticeThatThePeerWasKilledInTheMiddleOfASlice) {
  for (const Source source : {Source::kOrdinary, Source::kShared}) {
    constexpr std::uint32_t kBytes = 40'000'000;
    const auto other = OtherProcess::fork([&](const Wire& wire) {
      const auto own = join_over(wire, 1);
      Payload payload(source, kBytes);
      SliceHeader header;
      header.bytes = kBytes;
      EXPECT_EQ(own->endpoints[0]->put(header, payload.data(), 0), Posted::kPosted);
      wire.send("posted");
      wire.receive();
    });
    const auto own = join_over(other->wire(), 0);
    std::vector<std::byte> target(kBytes);
    own->sink.decide = [&](Endpoint&, const SliceHeader&) {
      return Landing{Landing::How::kInto, target.data()};
    };
    ASSERT_EQ(other->wire().receive(), "posted");
    while (own->sink.question_count() == 0) own->progress();
    other->kill();
    own->run_asleep([&] { return own->sink.count(Kind::kDown) == 1; });
    // Shared memory outlives its owner; what had been posted may still arrive.
    EXPECT_EQ(own->sink.count(Kind::kArrived), source == Source::kShared ? 1u : 0u);
    EXPECT_TRUE(own->sink.breaches().empty());
  }
}

TEST(ShmProcesses, FailToConnectToAProcessThatHasEnded) {
  std::string address;
  {
    const auto other = OtherProcess::fork([](const Wire& wire) {
      TransportContext context;
      context.rank = 1;
      context.rank_count = 2;
      context.key = std::string(32, 'k');
      wire.send(open_builtin("shm")(context).value()->address());
    });
    address = other->wire().receive();
    EXPECT_EQ(other->join(), 0);
  }
  RankHarness ranks(open_builtin("shm"), 2);
  ASSERT_TRUE(ranks[0].transport->connect(1, address).is_ok());
  ranks[0].run_asleep([&] { return ranks[0].sink.count(Kind::kDown) == 1; });
  EXPECT_NE(ranks[0].sink.events().front().text.find("process"), std::string::npos);
}

TEST(ShmProcesses, LeaveNothingBehindWhenKilled) {
  const Leftovers before = Leftovers::now();
  for (int round = 0; round < 3; ++round) {
    const auto other = OtherProcess::fork([](const Wire& wire) {
      const auto own = join_over(wire, 1);
      Payload payload(Source::kShared, 100'000);
      SliceHeader header;
      header.bytes = 100'000;
      EXPECT_EQ(own->endpoints[0]->put(header, payload.data(), 0), Posted::kPosted);
      own->run_asleep([&] { return own->sink.count(Kind::kAcknowledged) == 1; });
      wire.send("sent");
      wire.receive();
    });
    const auto own = join_over(other->wire(), 0);
    own->run_asleep([&] { return own->sink.count(Kind::kArrived) == 1; });
    ASSERT_EQ(other->wire().receive(), "sent");
    other->kill();
  }
  EXPECT_EQ(Leftovers::now(), before);
}

TEST(ShmProcesses, NeedNoRoomInDevShm) {
  const auto other = OtherProcess::fork([](const Wire&) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") != 0) {
      ::_exit(kCannotRun);
    }
    const auto peer = OtherProcess::fork(be_rank_one);
    const auto own = join_over(peer->wire(), 0);
    play(*own, 0);
    part(*own, peer->wire());
    EXPECT_EQ(peer->join(), 0);
    EXPECT_EQ(Leftovers::now().name_count, 0u);
  });
  const int outcome = other->join();
  if (outcome == kCannotRun) GTEST_SKIP() << "mounting a small /dev/shm needs root";
  EXPECT_EQ(outcome, 0);
}

}  // namespace
}  // namespace polyrail::testing
