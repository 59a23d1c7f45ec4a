// Topology: which ranks a plane joins.
#include "topology/topology.hpp"

#include <gtest/gtest.h>

namespace polyrail {
namespace {

Rail make_rail(std::string rail_name, RailKind kind, int plane) {
  Rail rail;
  rail.name = std::move(rail_name);
  rail.kind = kind;
  rail.plane = plane;
  return rail;
}

// Two hosts with two ranks each: tcp on plane 0 everywhere, tcp on plane 2 on the first host only,
// shared memory on plane 3, and a rail whose plane is not known.
Topology two_hosts() {
  Topology topology;
  topology.hosts.resize(2);
  topology.hosts[0].rails = {
      make_rail("eth0", RailKind::kTcp, 0), make_rail("eth1", RailKind::kTcp, 2),
      make_rail("shm", RailKind::kShm, 3), make_rail("eth9", RailKind::kTcp, -1)};
  topology.hosts[1].rails = {make_rail("eth0", RailKind::kTcp, 0),
                             make_rail("shm", RailKind::kShm, 3)};
  topology.rank_hosts = {0, 0, 1, 1};
  return topology;
}

TEST(Topology, PlaneCountIsOnePastTheLargestPlane) {
  EXPECT_EQ(two_hosts().plane_count(), 4);
  EXPECT_EQ(Topology().plane_count(), 0);
}

TEST(Topology, FindsTheRailOfARankOnAPlane) {
  const Topology topology = two_hosts();
  ASSERT_NE(topology.rail(1, 2), nullptr);
  EXPECT_EQ(topology.rail(1, 2)->name, "eth1");
  EXPECT_EQ(topology.rail(2, 2), nullptr);
  EXPECT_EQ(topology.rail(0, 1), nullptr);
  EXPECT_EQ(topology.rail(0, 7), nullptr);
}

TEST(Topology, RailsOfUnknownPlaneJoinNobody) {
  const Topology topology = two_hosts();
  EXPECT_EQ(topology.rail(0, -1), nullptr);
  EXPECT_FALSE(topology.joins(-1, 0, 1));
}

TEST(Topology, NetworkPlanesJoinAllRanksThatHaveARail) {
  const Topology topology = two_hosts();
  EXPECT_TRUE(topology.joins(0, 0, 2));
  EXPECT_TRUE(topology.joins(0, 0, 1));
  EXPECT_TRUE(topology.joins(2, 0, 1));
  EXPECT_FALSE(topology.joins(2, 0, 2));
}

TEST(Topology, HostLocalPlanesEndAtTheHost) {
  const Topology topology = two_hosts();
  EXPECT_TRUE(topology.joins(3, 0, 1));
  EXPECT_TRUE(topology.joins(3, 2, 3));
  EXPECT_FALSE(topology.joins(3, 1, 2));
}

TEST(Topology, AHostLocalRailOnOneSideIsEnoughToEndThere) {
  Topology topology = two_hosts();
  topology.hosts[1].rails[0].kind = RailKind::kShm;
  EXPECT_FALSE(topology.joins(0, 0, 2));
}

}  // namespace
}  // namespace polyrail
