// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/compare.h"

#include <algorithm>
#include <string>

#include "curtail/base/rng.h"
#include "curtail/load/report/report_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const MetricChange& Of(const Comparison& c, std::string_view key) {
  const auto found = std::find_if(c.changes.begin(), c.changes.end(),
                                  [&](const MetricChange& m) { return m.metric.key == key; });
  EXPECT_NE(found, c.changes.end()) << key;
  return *found;
}

ChangeVerdict VerdictOf(const Comparison& c, std::string_view key) { return Of(c, key).verdict; }

// Runs whose latencies are exponential with a mean that itself varies by up to `spread` between runs.
LoadReport Runs(int runs, double mean_us, double spread, uint64_t seed, int samples = 2000) {
  Rng rng(seed);
  LoadReport report;
  for (int i = 0; i < runs; ++i) {
    LoadResult& r = report.runs.emplace_back();
    r.plan = SamplePlan();
    const double mean = mean_us * (1 + spread * (2 * rng.Uniform01() - 1));
    for (int k = 0; k < samples; ++k) r.all.Record(Nanos(static_cast<int64_t>(rng.Exponential(mean * 1e3))));
    r.ok = r.sent = r.scheduled = static_cast<uint64_t>(samples);
    r.measured = std::chrono::seconds(10);
    r.good_per_s = samples / 10.0;
    r.cpu = Nanos(static_cast<int64_t>(samples * 1e4 * (1 + 0.1 * rng.Uniform01())));
  }
  return report;
}

TEST(Compare, FindsAChangeThatIsLargerThanTheSpreadOfRuns) {
  const Comparison c = Compare(Runs(5, 1000, 0.05, 1), Runs(5, 1500, 0.05, 2));
  EXPECT_TRUE(c.between_runs);
  for (const char* key : {"p50_us", "p90_us", "p99_us", "mean_us"}) {
    EXPECT_EQ(VerdictOf(c, key), ChangeVerdict::kWorse) << key;
    EXPECT_NEAR(*Of(c, key).ratio, 1.5, 0.15);
    EXPECT_LT(Of(c, key).ratio_interval->low, 1.5);
    EXPECT_GT(Of(c, key).ratio_interval->low, 1);
    EXPECT_GT(Of(c, key).ratio_interval->high, 1.4);
  }
  EXPECT_TRUE(c.worse());
  EXPECT_THAT(c.warnings, IsEmpty());
  const Comparison back = Compare(Runs(5, 1500, 0.05, 2), Runs(5, 1000, 0.05, 1));
  EXPECT_EQ(VerdictOf(back, "p50_us"), ChangeVerdict::kBetter);
  EXPECT_FALSE(back.worse());
}

// The spread between runs is what the test over runs knows and samples within runs do not.
TEST(Compare, RunsThatDifferByChanceAreNoise) {
  int wrong_between = 0, wrong_within = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const LoadReport a = Runs(5, 1000, 0.3, 2 * seed, 500), b = Runs(5, 1000, 0.3, 2 * seed + 1, 500);
    wrong_between += VerdictOf(Compare(a, b), "p50_us") != ChangeVerdict::kNoise ? 1 : 0;
    LoadReport one_a, one_b;
    one_a.runs = {a.runs[0]};
    one_b.runs = {b.runs[0]};
    const Comparison one = Compare(one_a, one_b);
    EXPECT_FALSE(one.between_runs);
    wrong_within += VerdictOf(one, "p50_us") != ChangeVerdict::kNoise ? 1 : 0;
  }
  EXPECT_LE(wrong_between, 12) << "5 % of 100";
  EXPECT_GE(wrong_within, 30) << "which is why the warning is there";
}

// The interval leaves out 1 exactly when the test finds a difference.
TEST(Compare, IntervalAndTestAgree) {
  int different = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const int m = 4 + static_cast<int>(rng.Below(5)), n = 4 + static_cast<int>(rng.Below(5));
    const Comparison c = Compare(Runs(m, 1000, 0.2, 3 * seed, 300), Runs(n, 1200, 0.2, 3 * seed + 1, 300));
    const MetricChange& mean = Of(c, "mean_us");
    ASSERT_TRUE(mean.ratio_interval.has_value());
    const bool without_1 = mean.ratio_interval->low > 1 || mean.ratio_interval->high < 1;
    EXPECT_EQ(without_1, *mean.p < 0.05);
    different += without_1 ? 1 : 0;
  }
  EXPECT_GT(different, 20);
  EXPECT_LT(different, 180);
}

TEST(Compare, FewRunsAreComparedByTheirSamplesWithAWarning) {
  const Comparison c = Compare(Runs(1, 1000, 0, 1), Runs(3, 1500, 0, 2));
  EXPECT_FALSE(c.between_runs);
  EXPECT_EQ(VerdictOf(c, "p50_us"), ChangeVerdict::kWorse);
  EXPECT_EQ(VerdictOf(c, "p99_us"), ChangeVerdict::kWorse);
  EXPECT_EQ(VerdictOf(c, "p99_9_us"), ChangeVerdict::kTooFew) << "2000 samples have no such interval";
  EXPECT_EQ(VerdictOf(c, "generator_cpu_us_per_request"), ChangeVerdict::kTooFew);
  EXPECT_EQ(VerdictOf(c, "error_share"), ChangeVerdict::kNoise);
  EXPECT_EQ(VerdictOf(c, "good_per_s"), ChangeVerdict::kNoise);
  EXPECT_THAT(c.warnings, Contains(HasSubstr("--repeat 5")));
  EXPECT_THAT(ComparisonText(c), HasSubstr("by the samples within the runs"));
}

TEST(Compare, ErrorsAndRatesAreJudgedToo) {
  LoadReport a = Runs(1, 1000, 0, 1), b = Runs(1, 1000, 0, 1);
  b.runs[0].failed = 100;
  b.runs[0].ok -= 500;
  const Comparison within = Compare(a, b);
  EXPECT_EQ(VerdictOf(within, "error_share"), ChangeVerdict::kWorse);
  EXPECT_EQ(VerdictOf(within, "good_per_s"), ChangeVerdict::kWorse);
  EXPECT_FALSE(Of(within, "error_share").ratio.has_value()) << "0 has no ratio";
  LoadReport runs_a = Runs(4, 1000, 0.1, 1), runs_b = Runs(4, 1000, 0.1, 1);
  for (LoadResult& run : runs_b.runs) run.failed = 100, run.good_per_s = 150;
  const Comparison between = Compare(runs_a, runs_b);
  EXPECT_EQ(VerdictOf(between, "error_share"), ChangeVerdict::kWorse);
  EXPECT_EQ(VerdictOf(between, "good_per_s"), ChangeVerdict::kWorse);
  EXPECT_EQ(VerdictOf(Compare(runs_b, runs_a), "good_per_s"), ChangeVerdict::kBetter);
}

TEST(Compare, EqualReportsAreNoiseThroughout) {
  for (int runs : {1, 5}) {
    for (const MetricChange& change : Compare(SampleReport(runs), SampleReport(runs)).changes) {
      EXPECT_TRUE(change.verdict == ChangeVerdict::kNoise || change.verdict == ChangeVerdict::kTooFew)
          << change.metric.key;
    }
  }
}

// Values of neighbouring buckets may be a nanosecond apart.
TEST(Compare, WhatTheHistogramCannotTellApartIsNoise) {
  LoadReport a = Runs(5, 1000, 0, 1, 0), b = a;
  for (size_t i = 0; i < 5; ++i) {
    a.runs[i].all.Record(Nanos(1'003'519 - static_cast<int64_t>(i)), 5000);
    b.runs[i].all.Record(Nanos(1'003'521 + static_cast<int64_t>(i)), 5000);
    a.runs[i].all.Record(Nanos(1)), b.runs[i].all.Record(Nanos(1));
    a.runs[i].all.Record(Nanos(9'000'000)), b.runs[i].all.Record(Nanos(9'000'000));
  }
  ASSERT_NE(a.runs[0].all.Percentile(50), b.runs[0].all.Percentile(50)) << "they lie in two buckets";
  EXPECT_EQ(VerdictOf(Compare(a, b), "p50_us"), ChangeVerdict::kNoise);
  a.runs.resize(1), b.runs.resize(1);
  EXPECT_EQ(VerdictOf(Compare(a, b), "p50_us"), ChangeVerdict::kNoise);
}

TEST(Compare, WarnsOfPlansThatDifferAndRunsThatAreVoid) {
  LoadReport a = SampleReport(5), b = SampleReport(5);
  for (LoadResult& run : b.runs) {
    run.plan.rate_per_s = 200;
    run.plan.method = "/x.Y/Z";
    run.plan.arrivals = "constant";
  }
  b.runs[1].invalid.push_back("late");
  b.runs[2].interrupted = true;
  const Comparison c = Compare(a, b);
  EXPECT_EQ(c.runs_b, 4u);
  EXPECT_TRUE(c.between_runs);
  EXPECT_THAT(c.warnings,
              testing::ElementsAre("the plans differ in method: /a.B/C and /x.Y/Z",
                                   "the plans differ in arrivals: poisson and constant",
                                   "the plans differ in rate: 100 and 200",
                                   "1 of 5 runs of B is void, and left out", "B was interrupted"));
  for (LoadResult& run : b.runs) run.invalid = {"late"};
  const Comparison none = Compare(a, b);
  EXPECT_FALSE(none.worse());
  for (const MetricChange& change : none.changes) EXPECT_EQ(change.verdict, ChangeVerdict::kTooFew);
  EXPECT_THAT(none.warnings, Contains(HasSubstr("no valid run")));
  EXPECT_THAT(ComparisonText(none), testing::ContainsRegex("\np99 \\(us\\) +- +- +- +- +-  too few\n"));
}

TEST(Compare, WarnsOfOtherArrivals) {
  EXPECT_THAT(Compare(SampleReport(2, 1), SampleReport(2, 5)).warnings,
              Contains(HasSubstr("the seeds differ")));
  EXPECT_THAT(Compare(SampleReport(2, 1), SampleReport(2, 1)).warnings,
              Not(Contains(HasSubstr("the seeds differ"))));
}

TEST(Compare, WritesTextAndJson) {
  const Comparison c = Compare(Runs(5, 1000, 0.05, 1), Runs(5, 1500, 0.05, 2));
  const std::string text = ComparisonText(c);
  EXPECT_THAT(text, HasSubstr("valid runs: 5 of A, 5 of B; each run counts as one"));
  EXPECT_THAT(text,
              testing::ContainsRegex("\np99 \\(us\\) +[0-9.]+ +[0-9.]+ +1\\.[0-9]+ .* 0\\.008  worse\n"));
  const nlohmann::json json = nlohmann::json::parse(ComparisonJson(c));
  EXPECT_EQ(json["worse"], true);
  EXPECT_EQ(json["metrics"]["p99_us"]["verdict"], "worse");
  EXPECT_EQ(json["metrics"]["error_share"]["ratio"], nullptr);
  EXPECT_EQ(json["metrics"].size(), 8u);
}

}  // namespace
}  // namespace curtail
