// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/result.h"

#include <cmath>

#include "curtail/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A run of 1000 requests of 2 ms each that went well.
LoadResult GoodRun() {
  LoadResult r;
  r.scheduled = r.sent = r.ok = 1000;
  r.scheduled_per_s = r.sent_per_s = r.good_per_s = 100;
  r.all.Record(milliseconds(2), 1000);
  r.send_lag.Record(microseconds(5), 1000);
  return r;
}

TEST(Judge, BelievesAGoodRun) {
  LoadResult r = GoodRun();
  Judge(r);
  EXPECT_THAT(r.invalid, IsEmpty());
}

TEST(Judge, VoidsALateGenerator) {
  LoadResult r = GoodRun();
  r.send_lag.Record(microseconds(230), 20);  // the p99; 10 % of the median are 200 us
  Judge(r);
  ASSERT_THAT(r.invalid, SizeIs(1));
  EXPECT_THAT(r.invalid[0], HasSubstr("late"));
}

TEST(Judge, VoidsAClosedLoopThatWasTheGeneratorsOwnLimit) {
  LoadResult r = GoodRun();
  r.plan.arrivals = "closed";
  r.measured = std::chrono::seconds(10);
  r.cpu = milliseconds(9400);
  Judge(r);
  EXPECT_TRUE(r.valid());
  r.cpu = milliseconds(9800);
  Judge(r);
  ASSERT_THAT(r.invalid, SizeIs(1));
  EXPECT_THAT(r.invalid[0], HasSubstr("busy 98 %"));
  r.spin = milliseconds(9000);  // waiting for the clock is not being busy
  Judge(r);
  EXPECT_TRUE(r.valid());
}

TEST(Judge, WarnsWhenWhatIntervalsAssumeDoesNotHold) {
  LoadResult r = GoodRun();
  r.plan.rate_per_s = r.plan.peak_per_s = 100;
  r.checks = {.gaps_a2 = 3.8, .neighbours = 0.4, .trend = -0.1};
  Judge(r);
  EXPECT_THAT(r.warnings, IsEmpty());
  r.checks = {.gaps_a2 = 4.0, .neighbours = 0.9, .trend = 0.9};
  Judge(r);
  EXPECT_THAT(r.warnings,
              testing::ElementsAre(HasSubstr("Poisson"), HasSubstr("rose"), HasSubstr("neighbours")));
  EXPECT_TRUE(r.valid()) << "a server in trouble is a result";
  r.plan.peak_per_s = 300;  // latency may well follow a rate that changes
  Judge(r);
  EXPECT_THAT(r.warnings, testing::ElementsAre(HasSubstr("Poisson"), HasSubstr("neighbours")));
}

TEST(Judge, AllowsATenthOfTheMedianAsLag) {
  LoadResult r = GoodRun();
  r.send_lag.Record(microseconds(190), 20);
  Judge(r);
  EXPECT_TRUE(r.valid());
}

TEST(Judge, AllowsWhatTimersAreLateWhenLatenciesAreTiny) {
  LoadResult r = GoodRun();
  r.all.Clear();
  r.all.Record(microseconds(100), 1000);
  r.send_lag.Record(microseconds(49), 20);  // half the median, but under the floor
  Judge(r);
  EXPECT_TRUE(r.valid());
  r.send_lag.Record(microseconds(60), 30);
  Judge(r);
  EXPECT_FALSE(r.valid());
}

TEST(Judge, VoidsARateOffByMoreThanAPercent) {
  LoadResult r = GoodRun();
  r.sent_per_s = 99.2;
  Judge(r);
  EXPECT_TRUE(r.valid());
  r.sent_per_s = 98.8;
  Judge(r);
  ASSERT_THAT(r.invalid, SizeIs(1));
  EXPECT_THAT(r.invalid[0], HasSubstr("-1.2 %"));
}

TEST(Judge, VoidsAnEmptyRunAndCallsThatNeverEnd) {
  LoadResult empty;
  Judge(empty);
  EXPECT_THAT(empty.invalid, SizeIs(1));
  LoadResult r = GoodRun();
  r.unfinished = 3;
  Judge(r);
  ASSERT_THAT(r.invalid, SizeIs(1));
  EXPECT_THAT(r.invalid[0], HasSubstr("3 calls"));
}

TEST(PercentileRanks, FollowTheOrderStatistics) {
  const RankInterval ten_thousand = PercentileRanks95(99, 10'000);
  EXPECT_EQ(ten_thousand.low, 9880u);
  EXPECT_EQ(ten_thousand.high, 9921u);
  // Neighbours that are alike count for less: 0.6 makes 10,000 samples worth 2,500.
  const RankInterval alike = PercentileRanks95(99, 10'000, 0.6);
  EXPECT_EQ(alike.low, 9860u);
  EXPECT_EQ(alike.high, 9941u);
  EXPECT_EQ(PercentileRanks95(99, 10'000, -0.6).low, ten_thousand.low) << "never narrower";
  const RankInterval median = PercentileRanks95(50, 100);
  EXPECT_EQ(median.low, 40u);
  EXPECT_EQ(median.high, 61u);
}

TEST(PercentileRanks, TheP99NeedsFiveHundredAndSixtyThreeSamples) {
  EXPECT_FALSE(PercentileRanks95(99, 562).high.has_value());
  EXPECT_EQ(PercentileRanks95(99, 563).high, 563u);
  EXPECT_FALSE(PercentileRanks95(50, 0).high.has_value());
  EXPECT_FALSE(PercentileRanks95(50, 1).low.has_value());
}

TEST(PercentileInterval, CoversTheTruePercentileNineteenTimesInTwenty) {
  // Exponential with mean 1 ms: the true p99 is ln(100) ms. 400 runs of 2000 samples; the number that cover
  // it has a mean of at least 380 (the ranks are rounded outward) and a standard deviation of 4.4.
  const Nanos truth(static_cast<int64_t>(1e6 * std::log(100.0)));
  Rng rng(17);
  int covered = 0;
  for (int run = 0; run < 400; ++run) {
    Histogram h;
    for (int i = 0; i < 2000; ++i) h.Record(Nanos(static_cast<int64_t>(rng.Exponential(1e6))));
    const ValueInterval ci = PercentileInterval95(h, 99);
    ASSERT_TRUE(ci.low && ci.high);
    covered += *ci.low <= truth && truth <= *ci.high;
  }
  EXPECT_GE(covered, 362);
  EXPECT_LE(covered, 399) << "an interval that always covers is too wide";
}

}  // namespace
}  // namespace curtail
