// Slices, controls and acknowledgements between two ranks over tcp.
#include <gtest/gtest.h>

#include "tests/transport/tcp_support.hpp"

namespace polyrail::tcp_test {
namespace {

class TcpSockets : public ::testing::TestWithParam<int> {
 protected:
  RankSetup setup() const {
    RankSetup result;
    result.tcp_sockets = GetParam();
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(TcpData, TcpSockets, ::testing::Values(1, 3));

TEST_P(TcpSockets, CarrySlicesOfManySizesUnchanged) {
  Pair pair(setup());
  const std::size_t limit = pair.transports[0]->caps().buffered_bytes;
  const std::size_t sizes[] = {0,         1,     2,         63,     64,       4095,
                               limit - 1, limit, limit + 1, 100000, 10 << 20, 7};
  std::uint32_t signal = 0;
  std::vector<std::vector<std::byte>> sources;
  for (const std::size_t size : sizes) sources.push_back(pattern(size, signal++));
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    pair.put(1, slice(i, sources[i].size()), sources[i].data(), 100 + i);
  }
  pair.drive_until([&] { return pair.sinks[1].acknowledged.size() == sources.size(); });
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(pair.sinks[0].slices[i], sources[i]) << "slice " << i;
  }
  EXPECT_EQ(pair.sinks[0].landed.size(), sources.size());
}

TEST_P(TcpSockets, CarryTrafficInBothDirectionsAtOnce) {
  Pair pair(setup());
  const auto source = pattern(3 << 20, 5);
  constexpr std::uint32_t kSlices = 40;
  for (std::uint32_t i = 0; i < kSlices; ++i) {
    for (int rank : {0, 1}) pair.put(rank, slice(i, source.size() / (1 + i)), source.data(), i);
  }
  pair.drive_until([&] {
    return pair.sinks[0].acknowledged.size() == kSlices &&
           pair.sinks[1].acknowledged.size() == kSlices;
  });
  for (int rank : {0, 1}) {
    for (std::uint32_t i = 0; i < kSlices; ++i) {
      const auto& got = pair.sinks[rank].slices[i];
      ASSERT_EQ(got.size(), source.size() / (1 + i));
      EXPECT_TRUE(std::equal(got.begin(), got.end(), source.begin())) << "slice " << i;
    }
  }
}

}  // namespace
}  // namespace polyrail::tcp_test
