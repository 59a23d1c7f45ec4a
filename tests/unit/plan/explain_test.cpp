// explain: a page that names what was chosen, what was not, and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/plan/planner.hpp"
#include "topology/synthetic.hpp"

namespace polyrail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string explained(const std::string& line, std::uint64_t bytes,
                      const PlanOptions& options = {}) {
  const Topology topology = parse_synthetic(line).value();
  CollectiveSpec spec;
  spec.rank_count = topology.rank_count();
  spec.count = bytes / 4;
  const Result<Plan> plan = make_plan(topology, spec, options);
  EXPECT_TRUE(plan.is_ok()) << plan.status().message();
  return explain(plan.value(), topology, options);
}

TEST(Explain, ShowsCandidatesSharesBottleneckAndLimit) {
  const std::string text = explained("2 hosts, rails 1gbit+2.5gbit+500mbit 20us", 16 << 20);
  EXPECT_THAT(text, AllOf(HasSubstr("4194304 float (16 MiB)"), HasSubstr("2 ranks on 2 hosts"),
                          HasSubstr("direct"), HasSubstr("ring"), HasSubstr("<- chosen"),
                          HasSubstr("25.0 %"), HasSubstr("62.5 %"), HasSubstr("12.5 %"),
                          HasSubstr("Bottleneck: plane"), HasSubstr("Limit: ")));
}

TEST(Explain, SaysWhyARailIsLeftOut) {
  EXPECT_THAT(explained("2 hosts, rails 10gbit 10us 1gbit 500us", 64 << 10),
              HasSubstr("left out: others end before its first byte"));
  EXPECT_THAT(explained("2 hosts, rails 1gbit+900mbit 20us", 1024),
              HasSubstr("left out: saves less than a message costs"));
}

TEST(Explain, SaysThatLatencyRulesSmallMessages) {
  EXPECT_THAT(explained("4 hosts, rails 1gbit 20us", 8), HasSubstr("Bottleneck: latency"));
}

TEST(Explain, SaysThatTheAlgorithmWasAskedFor) {
  PlanOptions options;
  options.algorithm = "ring";
  EXPECT_THAT(explained("4 hosts, rails 1gbit 20us", 8, options), HasSubstr("was asked for"));
}

TEST(Explain, NoticesAnOldPlan) {
  const Topology then = parse_synthetic("2 hosts, rails 1gbit+1gbit 20us").value();
  const Topology now = parse_synthetic("2 hosts, rails 1gbit+100mbit 20us").value();
  CollectiveSpec spec;
  spec.rank_count = 2;
  spec.count = 1 << 20;
  const Plan plan = make_plan(then, spec, {}).value();
  EXPECT_THAT(explain(plan, now, {}), HasSubstr("not the plan that would be made now"));
  EXPECT_THAT(explain(plan, then, {}), ::testing::Not(HasSubstr("made now")));
}

TEST(Explain, FitsInto100Columns) {
  for (const char* line : {"2 hosts, rails 1gbit+2.5gbit+500mbit 20us",
                           "3 hosts x 4 ranks, rails 1gbit+1gbit 20us, shm 8GBps 300ns",
                           "4 hosts, rails 1gbit+1gbit 20us, host 3 rails 600mbit+10mbit 900us"}) {
    for (const std::uint64_t bytes : {8U, 4096U, 1U << 20, 256U << 20}) {
      const std::string text = explained(line, bytes);
      std::size_t begin = 0;
      for (std::size_t end = text.find('\n'); end != std::string::npos;
           begin = end + 1, end = text.find('\n', begin)) {
        EXPECT_LE(end - begin, 100U) << text.substr(begin, end - begin);
      }
    }
  }
}

}  // namespace
}  // namespace polyrail
