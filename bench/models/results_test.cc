// SPDX-License-Identifier: Apache-2.0
#include "results.h"

#include <gtest/gtest.h>

#include <string>

namespace curtail::models {
namespace {

using std::chrono::milliseconds;

// An open loop of a second after a warm-up of 100 ms, all requests answered OK in the end.
LoadResult OpenLoop(uint64_t requests) {
  LoadResult result;
  result.plan.arrivals = "poisson";
  result.plan.warmup = milliseconds(100);
  result.measured = milliseconds(1000);
  result.scheduled = result.sent = result.ok = requests;
  result.scheduled_per_s = result.sent_per_s = result.good_per_s = static_cast<double>(requests);
  result.all.Record(milliseconds(2), requests);
  return result;
}

TEST(Evaluate, CountsWhatAProcessConsumedPerRequest) {
  ThreadStats used;
  used.voluntary_switches = 300, used.involuntary_switches = 100;
  used.cpu = milliseconds(20), used.run_delay = milliseconds(1);
  const Measurement m = Evaluate(OpenLoop(180), milliseconds(1100), 200, used);
  EXPECT_DOUBLE_EQ(m.context_switches, 2);
  EXPECT_DOUBLE_EQ(m.involuntary_switches, 0.5);
  EXPECT_DOUBLE_EQ(m.cpu_us, 100);
  EXPECT_DOUBLE_EQ(m.runqueue_us, 5);
  EXPECT_FALSE(m.saturated);
  EXPECT_FALSE(m.generator_bound);
}

// All are answered in the end, but it takes another half second to do so: 1,000 requests in 1.5 s.
TEST(Evaluate, ABacklogAtTheEndIsSaturation) {
  const Measurement m = Evaluate(OpenLoop(1000), milliseconds(1600), 1100, {});
  EXPECT_NEAR(m.achieved_per_s, 667, 1);
  EXPECT_TRUE(m.saturated);
  EXPECT_FALSE(Evaluate(OpenLoop(1000), milliseconds(1102), 1100, {}).saturated);
}

TEST(Evaluate, FailuresAreNotAchieved) {
  LoadResult result = OpenLoop(1000);
  result.ok = 900, result.failed = 100, result.good_per_s = 900;
  EXPECT_TRUE(Evaluate(result, milliseconds(1100), 1000, {}).saturated);
}

TEST(Evaluate, MarksALateOrBusyGenerator) {
  LoadResult late = OpenLoop(1000);
  late.invalid = {"the generator was late"};
  EXPECT_TRUE(Evaluate(late, milliseconds(1100), 1000, {}).generator_bound);
  LoadResult busy = OpenLoop(1000);
  busy.plan.arrivals = "closed";
  busy.cpu = milliseconds(950);
  EXPECT_TRUE(Evaluate(busy, milliseconds(1100), 1000, {}).generator_bound);
  busy.cpu = milliseconds(500);
  const Measurement m = Evaluate(busy, milliseconds(2000), 1000, {});
  EXPECT_FALSE(m.generator_bound);
  EXPECT_FALSE(m.saturated) << "a closed loop cannot be";
  EXPECT_DOUBLE_EQ(m.achieved_per_s, 1000);
}

Measurement WithP99(double p99_us, bool saturated = false) {
  Measurement m;
  m.p99_us = p99_us;
  m.saturated = saturated;
  return m;
}

TEST(Summarize, IsTheMedianWithItsRange) {
  EXPECT_FALSE(Summarize({}).has_value());
  const auto odd = Summarize({WithP99(9), WithP99(1), WithP99(4)});
  EXPECT_DOUBLE_EQ(odd->p99_us.median, 4);
  EXPECT_DOUBLE_EQ(odd->p99_us.min, 1);
  EXPECT_DOUBLE_EQ(odd->p99_us.max, 9);
  EXPECT_DOUBLE_EQ(Summarize({WithP99(2), WithP99(6)})->p99_us.median, 4);
}

TEST(Summarize, MarksNeedHalfOfTheRounds) {
  EXPECT_FALSE(Summarize({WithP99(1, true), WithP99(1), WithP99(1)})->saturated);
  EXPECT_TRUE(Summarize({WithP99(1, true), WithP99(1)})->saturated);
  EXPECT_TRUE(Summarize({WithP99(1, true)})->saturated);
}

TEST(BestOf, LooksAtOneFamilyAndSkipsSaturatedCells) {
  Results results;
  results.loads = {{.rate_per_s = 100}, {.outstanding = 8}};
  const auto row = [](const char* config, std::vector<Measurement> open, double throughput) {
    Measurement closed;
    closed.achieved_per_s = throughput;
    const Model model = Config::Parse(config)->model;
    return Row{config, model, {std::move(open), {closed}}, ""};
  };
  results.rows = {row("SIB1", {WithP99(50)}, 10), row("SDB1-4", {WithP99(20, true)}, 30),
                  row("SIP1", {WithP99(40)}, 20), row("FIB1", {WithP99(1)}, 99)};
  EXPECT_EQ(BestOf(results, Waiting::kSync, 0)->row, 2u);
  EXPECT_EQ(BestOf(results, Waiting::kSync, 1)->row, 1u);
  EXPECT_EQ(BestOf(results, Waiting::kFiber, 0)->row, 3u);
  EXPECT_FALSE(BestOf(results, Waiting::kAsync, 0).has_value());
}

TEST(BestPool, PrefersWhatIsNotSaturated) {
  Results results;
  results.loads = {{.rate_per_s = 100}};
  const auto row = [](const char* config, Measurement m) {
    return Row{config, Config::Parse(config)->model, {{std::move(m)}}, ""};
  };
  results.rows = {row("SDB1-4", WithP99(20, true)), row("SDB1-16", WithP99(40)), row("SDB1-50", WithP99(60)),
                  row("SIB1", WithP99(70, true)), row("SIB2", WithP99(65, true))};
  EXPECT_EQ(BestPool(results, results.rows[0].model, 0), 1u);
  EXPECT_EQ(BestPool(results, results.rows[3].model, 0), 4u);
  EXPECT_FALSE(BestPool(results, Config::Parse("FIB1")->model, 0).has_value());
}

}  // namespace
}  // namespace curtail::models
