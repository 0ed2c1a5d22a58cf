// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/demo_story.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/adapt/profile_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/curtail/compare/policy_judge.h"
#include "tools/curtail/compare/policy_summary.h"

namespace curtail::tool {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Fibers are as good as any; in-line polling is fast and gives up early.
Profile Trained() {
  const auto flat = [](double us) { return [us](double) { return us; }; };
  return MakeProfile({200, 1000, 4000}, {{"auto", 1e18, flat(1000), 0.1, 500, 0.1},
                                         {"SIP1", 1000, flat(1000), 0.1, 300, 0.95},
                                         {"SDB1-50", 1e18, flat(1500), 0.1, 500, 0.1}});
}

std::vector<std::string> Labels(const std::vector<PolicyChoice>& policies) {
  std::vector<std::string> labels;
  for (const PolicyChoice& policy : policies) labels.push_back(policy.label);
  return labels;
}

// Of the demo's policies: the p99 of all requests before, in and after the crowd.
struct CrowdLatencies {
  int quiet_us;
  int crowd_us;
};
PolicyComparison Crowd(const std::vector<CrowdLatencies>& given, int rounds = 5) {
  PolicyComparison c;
  c.policies = {"mutune", "static:auto", kBlockingPolicy, "static:SIP1", "static:SDB1-50"};
  c.policies.resize(given.size());
  c.scenarios = {*FlashCrowdScenario(200, 2000, milliseconds(800), milliseconds(500), milliseconds(1300),
                                     milliseconds(400))};
  c.rounds = rounds;
  for (int round = 0; round < rounds; ++round) {
    for (size_t policy = 0; policy < given.size(); ++policy) {
      PolicyMeasurement measured{
          .policy = c.policies[policy],
          .round = round,
          .first_config = given[policy].quiet_us == 1000 ? "FIB1" : absl::StrCat("SDB1-", policy + 1)};
      measured.server_cores = policy == 3 ? 0.96 : 0.2;
      for (const Phase& phase : c.scenarios[0].phases) {
        const auto& [quiet_us, crowd_us] = given[policy];
        const Nanos took = std::chrono::microseconds(phase.name == "spike" ? crowd_us : quiet_us);
        for (Nanos due = phase.from; due < phase.to; due += milliseconds(1))
          measured.samples.push_back({due, took, true});
      }
      c.runs.push_back(Evaluate(std::move(measured), c.scenarios[0]));
    }
  }
  return c;
}

TEST(DemoStory, ComparesBothCasesWithTheirStaticConfigs) {
  const Profile blocking = WithoutFibers(Trained());
  EXPECT_EQ(blocking.configs.size(), 2u);
  EXPECT_EQ(blocking.cells.size(), 18u);
  const std::vector<PolicyChoice> policies = DemoPolicies(Trained(), blocking, "/b.json");
  EXPECT_THAT(Labels(policies),
              ElementsAre("mutune", "static:auto", kBlockingPolicy, "static:SIP1", "static:SDB1-50"));
  EXPECT_EQ(policies[0].profile, "") << "that of the demo";
  EXPECT_EQ(policies[2].policy, "mutune");
  EXPECT_EQ(policies[2].profile, "/b.json");
  EXPECT_EQ(policies[2].cpu_weight, 0) << "latency alone";
  EXPECT_TRUE(policies[2].wants_profile && policies[2].switches);
}

TEST(DemoStory, WithoutSynchronousOrFiberConfigsThereIsOneCase) {
  const auto flat = [](double) { return 1000.0; };
  const Profile fibers = MakeProfile({200, 1000}, {{"auto", 1e18, flat}});
  EXPECT_THAT(Labels(DemoPolicies(fibers, WithoutFibers(fibers), "")), ElementsAre("mutune", "static:auto"));
  const Profile threads = MakeProfile({200, 1000}, {{"SDB1-16", 1e18, flat}});
  EXPECT_THAT(Labels(DemoPolicies(threads, WithoutFibers(threads), "")),
              ElementsAre("mutune", kBlockingPolicy, "static:SDB1-16"));
}

TEST(DemoStory, SaysWhereOneConfigIsRightAndWhereNoneIs) {
  const std::vector<std::string> story =
      DemoStory(Crowd({{1000, 9000}, {1000, 9000}, {410, 21000}, {400, 500000}, {600, 20000}}), Trained());
  ASSERT_EQ(story.size(), 3u);
  EXPECT_EQ(
      story[0],
      "A service that may use fibers: One config is right for all loads here, auto; mutune found it and runs "
      "it. "
      "Against auto it has 1.00 (95 %: 1.00 to 1.00) times the p99 (same config) and 1.00 times the CPU.");
  EXPECT_EQ(story[1],
            "A service whose libraries block cannot use them: p50 around the crowd and p99 in it are SIP1 "
            "0.40 ms and "
            "500 ms, SDB1-50 0.60 ms and 20.0 ms, and with mutune without fibers 0.41 ms and 21.0 ms. By "
            "latency alone, "
            "these are 0.35 (95 %: 0.35 to 0.35) times those of SIP1 (better) and 0.79 (95 %: 0.79 to 0.79) "
            "times those of "
            "SDB1-50 (better): no static config does both, and the win is believed.");
  EXPECT_EQ(story[2],
            "CPU of the mid-tier in cores, medians of the rounds: mutune 0.20, auto 0.20, mutune without "
            "fibers 0.20, "
            "SIP1 0.96, SDB1-50 0.20.");
}

TEST(DemoStory, ClaimsNoMoreThanWasMeasured) {
  const auto blocking = [](CrowdLatencies own, CrowdLatencies low, CrowdLatencies high, int rounds = 5) {
    return DemoStory(Crowd({{1000, 9000}, {1000, 9000}, own, low, high}, rounds), Trained())[1];
  };
  EXPECT_THAT(blocking({410, 21000}, {400, 500000}, {600, 20000}), HasSubstr("the win is believed"));
  EXPECT_THAT(blocking({700, 21000}, {400, 500000}, {600, 20000}),
              HasSubstr("one static config is right here, SDB1-50"));
  EXPECT_THAT(blocking({410, 21000}, {400, 20500}, {600, 20000}),
              HasSubstr("one static config is right here, SIP1"));
  EXPECT_THAT(blocking({410, 21000}, {400, 500000}, {600, 20000}, 4), HasSubstr("nothing is believed"));
  EXPECT_THAT(DemoStory(Crowd({{2000, 18000}, {1000, 9000}}), Trained())[0],
              HasSubstr("mutune chose auto, which the comparison does not confirm"));
  const std::string few = DemoStory(Crowd({{1000, 9000}, {1000, 9000}}, 1), Trained())[0];
  EXPECT_THAT(few, Not(HasSubstr("level"))) << "no finding of one round";
  EXPECT_THAT(DemoStory(PolicyComparison{}, Trained()), IsEmpty());
}

TEST(DemoStory, AWinInSomeRoundsOnlyIsNotBelieved) {
  PolicyComparison c = Crowd({{1000, 9000}, {1000, 9000}, {410, 21000}, {400, 500000}, {600, 20000}});
  for (PolicyRun& run : c.runs) {
    if (run.policy != "static:SDB1-50" || run.round % 2 == 0) continue;
    for (PhaseResult& result : run.phases) result.p50_us /= 2, result.p99_us /= 2;
  }
  EXPECT_THAT(DemoStory(c, Trained())[1], HasSubstr("a win over SDB1-50 is not believed"));
}

TEST(DemoStory, ABusyMachineIsNoEnd) {
  PolicyComparison c = Crowd({{1000, 9000}, {1000, 9000}});
  for (PolicyRun& run : c.runs) run.invalid = {"the generator was late"};
  EXPECT_THAT(DemoStory(c, Trained()), IsEmpty());
  BelieveIfNoneCanBe(c);
  EXPECT_EQ(DemoStory(c, Trained()).size(), 2u);
  ASSERT_EQ(c.notes.size(), 1u);
  EXPECT_THAT(Caveats(c)[0], HasSubstr("in 10 of 10 runs the load generator was late itself"));
  PolicyComparison some = Crowd({{1000, 9000}, {1000, 9000}});
  some.runs.front().invalid = {"the generator was late"};
  BelieveIfNoneCanBe(some);
  EXPECT_FALSE(some.runs.front().valid()) << "others of the same policy can be believed";
  EXPECT_THAT(some.notes, IsEmpty());
}

}  // namespace
}  // namespace curtail::tool
