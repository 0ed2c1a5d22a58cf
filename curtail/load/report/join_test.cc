// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/join.h"

#include "curtail/load/report/report_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

TEST(JoinResults, OneIsItself) {
  LoadReport one = SampleReport(1);
  LoadResult& run = one.runs.front();
  run.warnings.push_back("of the client");
  LoadReport joined{.runs = {JoinResults(run.plan, {run})}};
  LoadResult judged = run;
  Judge(judged);
  judged.warnings = joined.runs.front().warnings;  // of its judgement, and of its client
  EXPECT_THAT(judged.warnings, testing::Contains("of the client"));
  EXPECT_EQ(ReportJson(joined, SampleOrigin()), ReportJson({.runs = {judged}}, SampleOrigin()));
}

TEST(JoinResults, SumsWhatThePartsCounted) {
  const LoadResult a = SampleRun(1), b = SampleRun(2, 3);
  LoadPlan plan = a.plan;
  plan.rate_per_s *= 2;
  const LoadResult all = JoinResults(plan, {a, b});
  EXPECT_EQ(all.plan.rate_per_s, 2 * a.plan.rate_per_s);
  EXPECT_EQ(all.sent, a.sent + b.sent);
  EXPECT_EQ(all.codes.at("ABORTED"), a.failed + b.failed);
  EXPECT_EQ(all.all.count(), a.all.count() + b.all.count());
  EXPECT_EQ(all.all.max(), std::max(a.all.max(), b.all.max()));
  EXPECT_GT(all.success.Percentile(50), a.success.Percentile(50));
  EXPECT_LT(all.success.Percentile(50), b.success.Percentile(50));
  EXPECT_EQ(all.score.count, a.score.count + b.score.count);
  EXPECT_EQ(all.series.size(), a.series.size());
  EXPECT_EQ(all.series[3].sent, a.series[3].sent + b.series[3].sent);
  EXPECT_EQ(all.series[3].p99, std::max(a.series[3].p99, b.series[3].p99));
  EXPECT_EQ(all.measured, a.measured);
  EXPECT_DOUBLE_EQ(all.sent_per_s, a.sent_per_s + b.sent_per_s);
}

TEST(JoinResults, JoinsStepsMethodsAndChecks) {
  const LoadResult journeys = SampleJourneys().runs.front();
  const LoadResult both = JoinResults(journeys.plan, {journeys, journeys});
  ASSERT_EQ(both.steps.size(), 2u);
  EXPECT_EQ(both.steps[1].failed, 2u);
  EXPECT_EQ(both.steps[1].latency.count(), 2 * journeys.steps[1].latency.count());
  const LoadResult checked = SampleChecked().runs.front();
  const LoadResult twice = JoinResults(checked.plan, {checked, checked});
  EXPECT_EQ(twice.reply_checks.failed, 6u);
  EXPECT_EQ(twice.reply_checks.checks[1].failed, 6u);
  EXPECT_EQ(twice.reply_checks.checks[1].example, "it is absent");
}

TEST(JoinResults, IsVoidWhereAPartWasLate) {
  LoadResult late = SampleRun(1);
  late.send_lag.Record(std::chrono::milliseconds(50), late.send_lag.count());
  Judge(late);
  ASSERT_FALSE(late.valid());
  EXPECT_FALSE(JoinResults(late.plan, {late, SampleRun(2)}).valid());
}

}  // namespace
}  // namespace curtail
