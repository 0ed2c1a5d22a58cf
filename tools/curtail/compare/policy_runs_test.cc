// SPDX-License-Identifier: Apache-2.0
//
// Made-up samples whose sums are known.
#include "tools/curtail/compare/policy_runs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::tool {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Warm-up to 1 s, before to 11 s, spike to 12 s, first second after to 13 s, after to 21 s.
Scenario Crowd() { return *FlashCrowdScenario(100, 1000, seconds(10), seconds(1), seconds(9), seconds(1)); }

// A request of 1 ms each 10 ms, of the spike each millisecond; failed ones none.
std::vector<CallSample> Quick() {
  std::vector<CallSample> samples;
  for (Nanos due{0}; due < seconds(21);) {
    samples.push_back({due, milliseconds(1), true});
    due += due >= seconds(11) && due < seconds(12) ? milliseconds(1) : milliseconds(10);
  }
  return samples;
}

// Makes the requests due in [from, to) take `latency`.
void Slow(std::vector<CallSample>& samples, Nanos from, Nanos to, Nanos latency) {
  for (CallSample& sample : samples) {
    if (sample.due >= from && sample.due < to) sample.latency = latency;
  }
}

PolicyRun CrowdRun(std::vector<CallSample> samples, std::vector<ConfigChange> changes = {}) {
  return Evaluate({.policy = "mutune",
                   .round = 2,
                   .first_config = "SIP1",
                   .samples = std::move(samples),
                   .changes = std::move(changes),
                   .switches = 3,
                   .server_cores = 0.5},
                  Crowd());
}

ConfigChange Change(Nanos at, std::string to) { return {at, 100, "?", std::move(to), "cheaper"}; }

TEST(Evaluate, CountsByDueTime) {
  std::vector<CallSample> samples = Quick();
  Slow(samples, milliseconds(11'990), seconds(12), seconds(5));  // due in the spike, ends long after it
  const PolicyRun run = CrowdRun(samples);
  ASSERT_EQ(run.phases.size(), 4u);
  EXPECT_EQ(run.phases[0].due, 1000u);
  EXPECT_EQ(run.phases[1].due, 1000u);
  EXPECT_EQ(run.phases[2].due, 100u);
  EXPECT_EQ(run.phases[3].due, 800u);
  EXPECT_EQ(run.whole.due, 2900u) << "without the warm-up";
  EXPECT_DOUBLE_EQ(run.phases[1].mean_us, (990 * 1000.0 + 10 * 5e6) / 1000);
  EXPECT_DOUBLE_EQ(run.phases[1].p99_us, 1000) << "10 of 1000 are the last hundredth";
  EXPECT_DOUBLE_EQ(run.phases[2].p99_us, 1000);
  EXPECT_EQ(run.policy, "mutune");
  EXPECT_EQ(run.round, 2);
  EXPECT_DOUBLE_EQ(run.server_cores, 0.5);
}

TEST(Evaluate, PercentilesAreThoseOfTheNearestRank) {
  std::vector<CallSample> samples;
  for (int i = 200; i > 0; --i)  // not in the order of anything
    samples.push_back({seconds(2) + milliseconds(i), microseconds((i * 77) % 200 + 1), i != 13});
  const PolicyRun run = CrowdRun(samples);
  EXPECT_DOUBLE_EQ(run.phases[0].p50_us, 100);
  EXPECT_DOUBLE_EQ(run.phases[0].p99_us, 198);
  EXPECT_DOUBLE_EQ(run.phases[0].mean_us, 100.5);
  EXPECT_EQ(run.phases[0].ok, 199u);
  EXPECT_EQ(run.phases[0].failed, 1u);
  EXPECT_EQ(run.phases[1].due, 0u);
  EXPECT_EQ(run.phases[1].p99_us, 0);
}

TEST(Evaluate, SeriesHasNoGaps) {
  std::vector<CallSample> samples = Quick();
  std::erase_if(samples, [](const CallSample& s) { return s.due >= seconds(15) && s.due < seconds(16); });
  Slow(samples, milliseconds(5030), milliseconds(5040), milliseconds(70));
  const PolicyRun run = CrowdRun(samples);
  ASSERT_EQ(run.series.size(), 210u);
  for (size_t i = 0; i < run.series.size(); ++i)
    EXPECT_EQ(run.series[i].from, kBucketLength * static_cast<int>(i));
  EXPECT_EQ(run.series[0].due, 10u) << "the warm-up too";
  EXPECT_EQ(run.series[110].due, 100u);
  EXPECT_EQ(run.series[50].p99_us, 70'000);
  EXPECT_EQ(run.series[51].p99_us, 1000);
  EXPECT_EQ(run.series[155].due, 0u);
}

TEST(Evaluate, BacklogEndsWithTheLastSlowRequest) {
  EXPECT_EQ(CrowdRun(Quick()).backlog_after_spike, Nanos(0));
  std::vector<CallSample> samples = Quick();
  Slow(samples, milliseconds(11'100), milliseconds(14'500), milliseconds(200));
  EXPECT_EQ(CrowdRun(samples).backlog_after_spike, milliseconds(2490)) << "due at 14.49 s";
  Slow(samples, milliseconds(17'000), milliseconds(17'010), milliseconds(200));
  EXPECT_EQ(CrowdRun(samples).backlog_after_spike, milliseconds(2490)) << "one much later is something else";
}

TEST(Evaluate, SlowIsMeasuredAgainstBeforeTheSpike) {
  std::vector<CallSample> samples = Quick();
  Slow(samples, seconds(12), seconds(13), milliseconds(9));
  EXPECT_EQ(CrowdRun(samples).backlog_after_spike, Nanos(0)) << "under 10 ms is not slow";
  Slow(samples, seconds(12), seconds(13), milliseconds(11));
  EXPECT_EQ(CrowdRun(samples).backlog_after_spike, milliseconds(990));
  Slow(samples, seconds(1), seconds(2), milliseconds(4));  // now the p99 before is 4 ms
  EXPECT_EQ(CrowdRun(samples).backlog_after_spike, Nanos(0)) << "under 12 ms";
}

TEST(Evaluate, ReactionCountsFromTheFirstRequestOfTheSpike) {
  std::vector<CallSample> samples = Quick();
  std::erase_if(samples,
                [](const CallSample& s) { return s.due >= seconds(11) && s.due < milliseconds(11'002); });
  EXPECT_EQ(CrowdRun(samples).reaction, std::nullopt);
  const ConfigChange early = Change(milliseconds(11'001), "SDP1-4"),
                     in = Change(milliseconds(11'009), "SDB1-16"),
                     late = Change(milliseconds(12'500), "SIP1");
  EXPECT_EQ(CrowdRun(samples, {early, in, late}).reaction, milliseconds(7));
  EXPECT_EQ(CrowdRun(samples, {early, late}).reaction, std::nullopt) << "the spike was over";
}

TEST(Evaluate, KnowsWhichConfigWasInForce) {
  const PolicyRun run =
      CrowdRun(Quick(), {Change(seconds(3), "SDP1-4"), Change(milliseconds(11'250), "SDB1-16"),
                         Change(milliseconds(12'100), "SIP1")});
  EXPECT_EQ(run.phases[0].config, "SDP1-4");
  EXPECT_NEAR(run.phases[0].config_share, 0.8, 1e-9);
  EXPECT_EQ(run.phases[1].config, "SDB1-16");
  EXPECT_NEAR(run.phases[1].config_share, 0.75, 1e-9);
  EXPECT_EQ(run.phases[3].config, "SIP1");
  EXPECT_NEAR(run.phases[3].config_share, 1, 1e-9);
  EXPECT_EQ(run.settled_config, "SDB1-16") << "when the spike ended";
  EXPECT_EQ(CrowdRun(Quick()).settled_config, "SIP1");
}

TEST(Evaluate, KnowsWhatItDoesNotKnow) {
  const std::vector<ConfigChange> late = {{milliseconds(11'250), 100, "SDP1-4", "SDB1-16", "cheaper"},
                                          {milliseconds(11'500), 100, "SDB1-16", "SIP1", "cheaper"}};
  const PolicyRun all = CrowdRun(Quick(), late);
  EXPECT_EQ(all.phases[0].config, "SDP1-4") << "it was changed before the run, after it was asked for";
  EXPECT_EQ(all.reaction, milliseconds(250));
  const PolicyRun lost = Evaluate(
      {.first_config = "SIP1", .samples = Quick(), .changes = late, .changes_lost = true, .switches = 9000},
      Crowd());
  EXPECT_EQ(lost.phases[0].config, "");
  EXPECT_EQ(lost.phases[1].config, "SIP1");
  EXPECT_EQ(lost.reaction, std::nullopt) << "there may have been an earlier one";
  EXPECT_EQ(lost.settled_config, "SIP1");
}

TEST(Evaluate, FindsRestlessSeconds) {
  std::vector<ConfigChange> changes;
  for (int ms : {0, 10, 20, 30}) changes.push_back(Change(milliseconds(500 + ms), "A"));  // in the warm-up
  for (int ms : {0, 600, 1100, 1599, 2600}) changes.push_back(Change(milliseconds(5000 + ms), "B"));
  for (int ms = 0; ms < 50; ++ms) changes.push_back(Change(milliseconds(11'500 + ms), "C"));  // in the spike
  EXPECT_EQ(CrowdRun(Quick(), changes).most_switches_in_a_second, 3u);
  EXPECT_EQ(CrowdRun(Quick(), changes).switches, changes.size()) << "never fewer than are listed";
  EXPECT_EQ(CrowdRun(Quick()).switches, 3u);
  EXPECT_EQ(CrowdRun(Quick()).most_switches_in_a_second, 0u);
}

TEST(Evaluate, WithoutASpikeThereIsNeitherBacklogNorReaction) {
  const Scenario ramp = *RampScenario(10, 100, seconds(4), seconds(0));
  const PolicyRun run = Evaluate({.first_config = "SIP1",
                                  .samples = {{seconds(3), milliseconds(1), true}},
                                  .changes = {Change(seconds(1), "SDB1-4")},
                                  .switches = 1},
                                 ramp);
  EXPECT_EQ(run.backlog_after_spike, std::nullopt);
  EXPECT_EQ(run.reaction, std::nullopt);
  EXPECT_EQ(run.settled_config, "SDB1-4");
  EXPECT_EQ(run.phases[3].due, 1u);
  EXPECT_NEAR(run.whole.phase.rate_per_s, 55, 1e-9);
}

TEST(Evaluate, TakesNoSamplesAtAll) {
  const PolicyRun run = CrowdRun({});
  EXPECT_EQ(run.whole.due, 0u);
  EXPECT_EQ(run.backlog_after_spike, Nanos(0));
  EXPECT_EQ(run.reaction, std::nullopt);
}

}  // namespace
}  // namespace curtail::tool
