// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_cost.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/curtail/compare/policy_testing.h"

namespace curtail::tool {
namespace {

using std::chrono::milliseconds;
using testing::IsEmpty;

// Policies with these p99 and CPU in every round.
struct Given {
  double p99_us;
  int cpu_ms;
};
PolicyComparison Comparison(const std::vector<Given>& policies) {
  PolicyComparison c = BareComparison(policies.size(), 3, 2,
                                      [&](size_t policy, int, size_t) { return policies[policy].p99_us; });
  for (PolicyRun& run : c.runs)
    run.server_cpu = milliseconds(policies[static_cast<size_t>(run.policy.back() - '0')].cpu_ms);
  return c;
}

TEST(PolicyCost, IsTheMeanOverCellsOfTheMedianOverRounds) {
  PolicyComparison c = BareComparison(2, 3, 2, [](size_t policy, int round, size_t phase) {
    const double median = phase == 0 ? 1000 : 4000;
    return (policy == 0 ? 1 : 2) * (round == 0 ? median * 9 : round == 1 ? median : median / 3);
  });
  for (PolicyRun& run : c.runs) run.server_cpu = milliseconds(100 * (run.round + 1));
  const std::vector<std::optional<PolicyCost>> costs = CostsOf(c);
  EXPECT_NEAR(costs[0]->p99_us, 2000, 1e-6);
  EXPECT_NEAR(costs[1]->p99_us, 4000, 1e-6);
  EXPECT_NEAR(costs[0]->cpu_s, 0.2, 1e-9);
}

TEST(PolicyCost, TheFrontHasWhatNoOtherPolicyBeatsInBoth) {
  const PolicyComparison c = Comparison({{1000, 900}, {2000, 500}, {2500, 600}, {3000, 100}, {3000, 200}});
  std::vector<bool> front;
  for (const auto& cost : CostsOf(c)) front.push_back(cost->on_front);
  EXPECT_THAT(front, testing::ElementsAre(true, true, false, true, false));
  EXPECT_THAT(FrontText(c),
              testing::EndsWith(" than policy-0 (1.00 ms, 0.9 s), policy-1 (2.00 ms, 0.5 s), policy-3 "
                                "(3.00 ms, 0.1 s)."));
  EXPECT_TRUE(CostsOf(Comparison({{1000, 100}, {1000, 100}}))[1]->on_front)
      << "equals do not beat each other";
}

TEST(PolicyCost, EachPolicyIsJudgedAgainstTheCheapestThatReachesTheLowestP99) {
  EXPECT_EQ(ReachText(Comparison({{1090, 102}, {1000, 700}, {1050, 100}, {1500, 50}})),
            "Within 10 % of the lowest p99 (1.00 ms) policy-2 is the cheapest (0.1 s of CPU); policy-0 takes "
            "1.02 times "
            "its CPU, policy-1 takes 7.00 times its CPU. Not there: policy-3 (1.50 times the lowest p99, "
            "0.50 times the "
            "CPU).");
  EXPECT_EQ(ReachText(Comparison({{1500, 50}, {1000, 100}})),
            "Within 10 % of the lowest p99 (1.00 ms) policy-1 is the cheapest (0.1 s of CPU). Not there: "
            "policy-0 (1.50 "
            "times the lowest p99, 0.50 times the CPU).");
}

TEST(PolicyCost, PoliciesInTheSameConfigAreOne) {
  PolicyComparison c = Comparison({{1000, 100}, {5000, 40}, {1500, 100}});
  for (PolicyRun& run : c.runs) {
    for (PhaseResult& phase : run.phases) phase.config = run.policy == "policy-1" ? "SIB1" : "auto";
  }
  const std::string front = FrontText(c), reach = ReachText(c);
  EXPECT_THAT(front, testing::HasSubstr("policy-0 = policy-2 ("));
  EXPECT_THAT(reach, testing::HasSubstr(" policy-0 = policy-2 is the cheapest"));
  EXPECT_THAT(reach, testing::HasSubstr("Not there: policy-1 ("));
  EXPECT_THAT(reach, testing::Not(testing::HasSubstr("policy-2 (")));
  const std::vector<std::optional<PolicyCost>> costs = CostsOf(c);
  ASSERT_EQ(costs.size(), 3u);
  EXPECT_EQ(costs[0]->p99_us, costs[2]->p99_us);
  EXPECT_TRUE(costs[0]->on_front && costs[2]->on_front);
}

TEST(PolicyCost, IsOfThoseThatRan) {
  PolicyComparison c = Comparison({{1000, 900}, {2000, 500}, {500, 100}});
  std::erase_if(c.runs, [](const PolicyRun& run) { return run.policy == "policy-2"; });
  const std::vector<std::optional<PolicyCost>> costs = CostsOf(c);
  EXPECT_TRUE(costs[0]->on_front);
  EXPECT_FALSE(costs[2]);
  std::erase_if(c.runs, [](const PolicyRun& run) { return run.policy == "policy-1"; });
  EXPECT_THAT(FrontText(c), IsEmpty()) << "one policy is no front";
  EXPECT_THAT(ReachText(c), IsEmpty());
  EXPECT_THAT(CostsOf(PolicyComparison{}), IsEmpty());
  EXPECT_THAT(FrontText(PolicyComparison{}), IsEmpty());
  EXPECT_THAT(ReachText(PolicyComparison{}), IsEmpty());
}

}  // namespace
}  // namespace curtail::tool
