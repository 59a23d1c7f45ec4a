// Which rails are tried with which, and which form a plane.
#include "src/comm/match.hpp"

#include <gtest/gtest.h>

namespace polyrail {
namespace {

Announcement rank_on(const std::string& host, std::int64_t process,
                     const std::vector<std::pair<std::string, std::string>>& tcp) {
  Announcement rank;
  rank.host = host;
  rank.process = process;
  for (const char* local : {"loopback", "shm"}) {
    Offer offer;
    offer.rail.name = local;
    offer.rail.kind = std::string(local) == "shm" ? RailKind::kShm : RailKind::kLoopback;
    rank.offers.push_back(offer);
  }
  for (const auto& [device, address] : tcp) {
    Offer offer;
    offer.rail.name = offer.rail.device = device;
    offer.rail.kind = RailKind::kTcp;
    offer.rail.address = address;
    rank.offers.push_back(offer);
  }
  return rank;
}

using Pairs = std::vector<std::pair<int, int>>;

TEST(MatchRails, PairsBySubnetWhateverTheNames) {
  const auto a = rank_on("a", 1, {{"eth0", "10.0.0.1"}, {"eth1", "10.0.1.1"}, {"x", "10.9.2.1"}});
  const auto b = rank_on("b", 1, {{"eno7", "10.0.1.2"}, {"eth0", "10.9.2.2"}, {"y", "10.0.0.2"}});
  Pairs pairs = match_rails(a, b, RailKind::kTcp);
  std::sort(pairs.begin(), pairs.end());
  EXPECT_EQ(pairs, (Pairs{{2, 4}, {3, 2}, {4, 3}}));
}

TEST(MatchRails, TakesUnequalNumbersOfRails) {
  const auto a = rank_on("a", 1, {{"eth0", "10.0.0.1"}, {"eth1", "10.0.1.1"}});
  const auto b = rank_on("b", 1, {{"eth0", "10.0.1.2"}});
  EXPECT_EQ(match_rails(a, b, RailKind::kTcp), (Pairs{{3, 2}}));
}

TEST(MatchRails, KeepsAddressFamiliesApart) {
  const auto a = rank_on("a", 1, {{"eth0", "10.0.0.1"}});
  const auto b = rank_on("b", 1, {{"eth0", "fd00::2"}});
  EXPECT_TRUE(match_rails(a, b, RailKind::kTcp).empty());
}

TEST(MatchRails, NeverTriesLoopbackAddressesBetweenHosts) {
  const auto a = rank_on("a", 1, {{"lo", "127.0.0.1"}, {"eth0", "10.0.0.1"}});
  const auto b = rank_on("b", 1, {{"lo", "127.0.0.1"}, {"eth0", "10.0.0.2"}});
  EXPECT_EQ(match_rails(a, b, RailKind::kTcp), (Pairs{{3, 3}}));
  const auto c = rank_on("a", 2, {{"lo", "127.0.0.1"}, {"eth0", "10.0.0.1"}});
  EXPECT_EQ(match_rails(a, c, RailKind::kTcp), (Pairs{{2, 2}}));
}

TEST(MatchRails, JoinsThreadsAndProcessesOfAHostByLocalRails) {
  const auto a = rank_on("a", 1, {});
  const auto same_process = rank_on("a", 1, {});
  const auto same_host = rank_on("a", 2, {});
  const auto other_host = rank_on("b", 1, {});
  EXPECT_EQ(match_rails(a, same_process, RailKind::kLoopback), (Pairs{{0, 0}}));
  EXPECT_TRUE(match_rails(a, same_host, RailKind::kLoopback).empty());
  EXPECT_EQ(match_rails(a, same_host, RailKind::kShm), (Pairs{{1, 1}}));
  EXPECT_TRUE(match_rails(a, other_host, RailKind::kShm).empty());
}

TEST(NumberPlanes, JoinsWhatReachesEachOther) {
  const std::vector<Announcement> ranks = {
      rank_on("a", 1, {{"eth0", "10.0.0.1"}, {"eth1", "10.0.1.1"}}),
      rank_on("b", 1, {{"eth0", "10.0.1.2"}, {"eth1", "10.0.0.2"}}),
      rank_on("c", 1, {{"eth0", "10.0.0.3"}})};
  const std::vector<Edge> edges = {{0, 2, 1, 3}, {0, 3, 1, 2}, {0, 2, 2, 2}, {1, 3, 2, 2}};
  const auto planes = number_planes(ranks, edges);
  EXPECT_EQ(planes[0], (std::vector<int>{-1, -1, 0, 1}));
  EXPECT_EQ(planes[1], (std::vector<int>{-1, -1, 1, 0}));
  EXPECT_EQ(planes[2], (std::vector<int>{-1, -1, 0}));
}

TEST(NumberPlanes, NeverPutsTwoRailsOfARankOnOnePlane) {
  const std::vector<Announcement> ranks = {
      rank_on("a", 1, {{"eth0", "10.0.0.1"}, {"eth1", "10.0.0.2"}}),
      rank_on("b", 1, {{"eth0", "10.0.0.3"}})};
  const auto planes = number_planes(ranks, {{0, 2, 1, 2}, {0, 3, 1, 2}});
  EXPECT_NE(planes[0][2], planes[0][3]);
}

TEST(NumberPlanes, GivesLocalRailsOneNumberOnAllHosts) {
  const std::vector<Announcement> ranks = {rank_on("a", 1, {}), rank_on("a", 2, {}),
                                           rank_on("b", 1, {}), rank_on("b", 2, {})};
  const auto planes = number_planes(ranks, {{0, 1, 1, 1}, {2, 1, 3, 1}});
  EXPECT_EQ(planes[0][1], planes[2][1]);
  EXPECT_EQ(planes[0][0], -1);
}

}  // namespace
}  // namespace polyrail
