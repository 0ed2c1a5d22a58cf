// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/join.h"

#include "absl/strings/str_cat.h"
#include "curtail/load/report/report_read.h"
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

TEST(JoinResults, KeepsAsFewTextsOfErrorsAsARunDoes) {
  constexpr uint64_t kParts = 120, kTexts = 10;
  std::vector<LoadResult> parts(kParts, SampleRun(1));
  for (uint64_t part = 0; part < kParts; ++part) {
    parts[part].errors.clear();
    for (uint64_t text = 0; text < kTexts; ++text)
      parts[part].errors[absl::StrCat("ABORTED: row ", part * kTexts + text)] = 1;
    parts[part].errors["ABORTED: (other texts)"] = 5;
    parts[part].errors["UNAVAILABLE"] = 1;
  }
  const LoadResult all = JoinResults(parts.front().plan, parts);
  EXPECT_EQ(all.errors.size(), kTexts + 2);
  EXPECT_EQ(all.errors.at("ABORTED: row 0"), 1u);
  EXPECT_EQ(all.errors.at("ABORTED: (other texts)"), kParts * (kTexts + 5) - kTexts);
  EXPECT_EQ(all.errors.at("UNAVAILABLE"), kParts);
  const absl::StatusOr<LoadReport> read = ParseReport(ReportJson({.runs = {all}}));
  EXPECT_TRUE(read.ok()) << read.status();
}

TEST(JoinResults, IsVoidWhereAPartWasLate) {
  LoadResult late = SampleRun(1);
  late.send_lag.Record(std::chrono::milliseconds(50), late.send_lag.count());
  Judge(late);
  ASSERT_FALSE(late.valid());
  EXPECT_FALSE(JoinResults(late.plan, {late, SampleRun(2)}).valid());
}

ShareReport Share(int share, int shares, int runs = 1) {
  return {absl::StrCat(share, ".json"), SampleShare(share, shares, runs)};
}

// Why the first run of the joined parts is void.
std::vector<std::string> Reasons(const std::vector<ShareReport>& parts) {
  const absl::StatusOr<LoadReport> joined = JoinReports(parts);
  EXPECT_TRUE(joined.ok()) << joined.status();
  return joined.ok() ? joined->runs.front().invalid : std::vector<std::string>();
}

std::string Refusal(const std::vector<ShareReport>& parts) {
  return std::string(JoinReports(parts).status().message());
}

TEST(JoinReports, AddsUpRunByRunInAnyOrder) {
  const std::vector<ShareReport> parts = {Share(3, 3, 2), Share(1, 3, 2), Share(2, 3, 2)};
  const absl::StatusOr<LoadReport> all = JoinReports(parts);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->runs.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const LoadResult& run = all->runs[i];
    EXPECT_THAT(run.invalid, testing::IsEmpty());
    EXPECT_EQ(run.sent,
              parts[0].report.runs[i].sent + parts[1].report.runs[i].sent + parts[2].report.runs[i].sent);
    EXPECT_EQ(run.all.count(), run.sent);
    EXPECT_EQ(run.plan.share, 0);
    EXPECT_EQ(run.plan.seed, i);
    EXPECT_EQ(run.started, parts[1].report.runs[i].started) << "the first of them";
  }
  EXPECT_THAT(PlanText(all->runs.front().plan), testing::HasSubstr("on each of 3 generators"));
}

TEST(JoinReports, IsVoidWithoutAShare) {
  EXPECT_THAT(Reasons({Share(1, 3), Share(3, 3)}),
              testing::ElementsAre(testing::StartsWith("share 2 of 3 has no result")));
  const absl::StatusOr<LoadReport> all = JoinReports({Share(1, 2, 2), Share(2, 2, 1)});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_TRUE(all->runs[0].valid());
  EXPECT_THAT(all->runs[1].invalid, testing::ElementsAre(testing::StartsWith("share 2 of 2 has no result")));
}

TEST(JoinReports, IsVoidWhereAShareIsNot) {
  std::vector<ShareReport> parts = {Share(1, 2), Share(2, 2)};
  LoadResult& late = parts[1].report.runs.front();
  late.send_lag.Record(std::chrono::milliseconds(50), late.send_lag.count() / 8);
  Judge(late);
  ASSERT_FALSE(late.valid());
  EXPECT_THAT(Reasons(parts), testing::Contains(testing::StartsWith("2.json: the generator was late")));
  parts[1] = Share(2, 2);
  parts[1].report.runs.front().interrupted = true;
  parts[1].report.runs.front().measured = std::chrono::seconds(3);
  EXPECT_THAT(Reasons(parts), testing::ElementsAre("2.json: it was interrupted after 3.0 of 10.0 s"));
}

TEST(JoinReports, IsVoidWhereGeneratorsDidNotStartTogether) {
  std::vector<ShareReport> parts = {Share(1, 2), Share(2, 2)};
  Nanos& started = parts[1].report.runs.front().started;
  started += std::chrono::milliseconds(99);
  EXPECT_THAT(Reasons(parts), testing::IsEmpty()) << "100 ms of 10 s";
  started += std::chrono::milliseconds(1);
  EXPECT_THAT(Reasons(parts),
              testing::ElementsAre(testing::StartsWith("2.json: it started 0.101 s from the first")));
  started = Nanos(0);  // not known
  EXPECT_THAT(Reasons(parts), testing::ElementsAre("2.json: its file does not have when it started"));
  parts[1] = Share(2, 2);
  for (ShareReport& part : parts) {
    LoadResult& run = part.report.runs.front();
    run.plan.requests = 1000;
    run.plan.duration = std::chrono::hours(24);  // at most
    run.started += run.plan.share * std::chrono::milliseconds(100);
  }
  EXPECT_THAT(Reasons(parts), testing::ElementsAre(testing::HasSubstr("--start-at")))
      << "of the time that they took";
}

TEST(JoinReports, RefusesWhatIsNotOfOneTest) {
  EXPECT_EQ(Refusal({Share(1, 2), Share(1, 2)}), "1.json is named twice; name each share once");
  EXPECT_THAT(Refusal({{"a.json", SampleReport(1)}, Share(1, 2)}),
              testing::StartsWith("a.json is not a share"));
  EXPECT_THAT(
      Refusal({Share(1, 2), Share(2, 3)}),
      testing::StartsWith("2.json has --share of 3, 1.json has 2; run all shares with the same flags"));
  std::vector<ShareReport> parts = {Share(1, 2), Share(2, 2)};
  parts[1].report.runs.front().plan.seed = 7;
  EXPECT_THAT(Refusal(parts), testing::HasSubstr("seed 7"));
}

TEST(JoinReports, JudgesAClosedLoopByTheThreadsOfAll) {
  std::vector<ShareReport> parts = {Share(1, 2), Share(2, 2)};
  for (ShareReport& part : parts) {
    LoadResult& run = part.report.runs.front();
    run.plan.arrivals = "closed";
    run.plan.threads = 2;
    run.cpu = run.spin + std::chrono::seconds(18);  // of 20
    Judge(run);
  }
  EXPECT_THAT(Reasons(parts), testing::IsEmpty());
  LoadResult& run = parts[0].report.runs.front();
  run.cpu += std::chrono::seconds(2);
  Judge(run);
  EXPECT_THAT(Reasons(parts),
              testing::Contains(testing::HasSubstr("1.json: the generator's thread was busy 100 %")));
}

}  // namespace
}  // namespace curtail
