#include "tests/support/rank_harness.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

namespace polyrail::testing {

OpenTransport open_builtin(std::string kind, Options options, std::string rail_name) {
  return [=](const TransportContext& context) -> Result<std::unique_ptr<Transport>> {
    for (const auto& candidate : builtin_transports()) {
      if (candidate.name != kind) continue;
      const auto rails = candidate.discover(options);
      if (!rails.is_ok()) return rails.status();
      for (const auto& rail : rails.value()) {
        if (!rail_name.empty() && rail.name != rail_name) continue;
        return candidate.open(rail, context, options, silent_logger());
      }
    }
    return Status(StatusCode::kInvalidArgument, "no rail '" + rail_name + "' of kind " + kind);
  };
}

bool HarnessRank::progress() {
  sink.enter_progress();
  const bool has_moved = transport->progress(sink);
  sink.leave_progress();
  return has_moved;
}

void HarnessRank::run_asleep(const std::function<bool()>& is_done) {
  while (!is_done()) {
    if (progress() || !transport->prepare_sleep()) continue;
    pollfd waiting{transport->descriptor(), POLLIN, 0};
    ::poll(&waiting, 1, waiting.fd < 0 ? 1 : -1);
    transport->end_sleep(true);
  }
}

RankHarness::RankHarness(const OpenTransport& open, int rank_count, TransportContext context) {
  if (context.key.empty()) context.key = std::string(32, 'k');
  context.rank_count = rank_count;
  for (int rank = 0; rank < rank_count; ++rank) {
    context.rank = rank;
    auto opened = open(context);
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    ranks_.push_back(std::make_unique<HarnessRank>());
    if (opened.is_ok()) ranks_.back()->transport = std::move(opened).value();
    ranks_.back()->endpoints.resize(rank_count);
  }
}

void RankHarness::connect() {
  for (int rank = 0; rank < rank_count(); ++rank) {
    for (int peer = 0; peer < rank_count(); ++peer) {
      if (peer == rank) continue;
      const auto address = ranks_[peer]->transport->address();
      const auto endpoint = ranks_[rank]->transport->connect(peer, address);
      ASSERT_TRUE(endpoint.is_ok()) << endpoint.status().message();
      ASSERT_EQ(endpoint.value()->peer(), peer);
      ranks_[rank]->endpoints[peer] = endpoint.value();
    }
  }
}

void RankHarness::connect_until_up() {
  connect();
  const auto others = static_cast<std::size_t>(rank_count() - 1);
  progress_until([&] {
    for (const auto& rank : ranks_) {
      const auto downs = rank->sink.events(RecordingSink::Kind::kDown);
      if (!downs.empty()) {
        ADD_FAILURE() << downs.front().text;
        return true;
      }
      if (rank->sink.count(RecordingSink::Kind::kUp) < others) return false;
    }
    return true;
  });
}

bool RankHarness::progress() {
  bool has_moved = false;
  for (const auto& rank : ranks_) {
    if (rank->transport) has_moved |= rank->progress();
  }
  return has_moved;
}

void RankHarness::progress_until(const std::function<bool()>& is_done) {
  // On a loaded machine a yield costs far more than a look, and mostly nobody else has to run.
  constexpr int kIdleRounds = 1000;
  for (int idle_count = 0; !is_done();) {
    idle_count = progress() ? 0 : idle_count + 1;
    if (idle_count > kIdleRounds) std::this_thread::yield();
  }
}

void RankHarness::expect_no_breaches() const {
  for (const auto& rank : ranks_) {
    for (const auto& breach : rank->sink.breaches()) ADD_FAILURE() << breach;
  }
}

}  // namespace polyrail::testing
