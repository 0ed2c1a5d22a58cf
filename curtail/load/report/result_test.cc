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
  r.send_lag.Record(microseconds(600), 20);  // the p99; a quarter of the p99 latency is 500 us
  Judge(r);
  ASSERT_THAT(r.invalid, SizeIs(1));
  EXPECT_THAT(r.invalid[0], HasSubstr("late"));
  EXPECT_THAT(r.invalid[0], HasSubstr("p99 is 60"));
  EXPECT_THAT(r.invalid[0], HasSubstr("CAP_SYS_NICE")) << "what to do";
  r.plan.realtime = true;
  Judge(r);
  EXPECT_THAT(r.invalid[0], testing::Not(HasSubstr("CAP_SYS_NICE")));
}

// Latencies and lags of one run: `lag(i)` of request i is part of its latency. The service takes 40 us, and 250 us
// for every fiftieth request.
template <class F>
LoadResult RunWithLag(int requests, double rate, F lag) {
  LoadResult r;
  r.scheduled = r.sent = r.ok = static_cast<uint64_t>(requests);
  r.scheduled_per_s = r.sent_per_s = r.good_per_s = rate;
  for (int i = 0; i < requests; ++i) {
    const Nanos served = microseconds(i % 50 == 7 ? 250 : 40);
    r.all.Record(served + lag(i));
    r.since_sent.Record(served);
    r.send_lag.Record(lag(i));
  }
  return r;
}

// As recorded without real-time priority on two CPUs that the server shares.
Nanos QuietLag(int i) {
  if (i % 500 == 3) return microseconds(1500);
  if (i % 100 == 1) return microseconds(60);
  return i % 10 == 1 ? microseconds(12) : microseconds(0);
}

TEST(Judge, BelievesAndCorrectsAQuietGeneratorBesideAFastService) {
  for (const double rate : {500.0, 2000.0, 10'000.0}) {
    LoadResult r = RunWithLag(static_cast<int>(10 * rate), rate, QuietLag);
    Judge(r);
    EXPECT_THAT(r.invalid, IsEmpty()) << rate;
  }
  LoadResult r = RunWithLag(100'000, 10'000, QuietLag);
  Judge(r);
  ASSERT_THAT(r.warnings, SizeIs(1));
  EXPECT_THAT(r.warnings[0], HasSubstr("p99.9 (1540 us, 250 us since sent)"));
  EXPECT_THAT(r.warnings[0], HasSubstr("% of the mean gap"));
  ASSERT_THAT(LaggedPercentiles(r), testing::Not(IsEmpty()));
  EXPECT_EQ(LaggedPercentiles(r).back().percent, 99.9);
}

TEST(Judge, VoidsAGeneratorBesideBusyThreads) {
  // Every tenth request waits for a slice of the scheduler.
  LoadResult r = RunWithLag(10'000, 1000, [](int i) { return i % 10 == 1 ? milliseconds(3) : Nanos(0); });
  Judge(r);
  ASSERT_THAT(r.invalid, SizeIs(1));
  EXPECT_THAT(r.invalid[0], HasSubstr("late"));
}

TEST(Judge, VoidsAGeneratorThatStoodStillForASecond) {
  // Requests due while it stands still leave at its end.
  const auto stopped = [](int from, int length) {
    return [=](int i) { return i < from || i >= from + length ? Nanos(0) : milliseconds(from + length - i); };
  };
  LoadResult r = RunWithLag(10'000, 1000, stopped(4000, 1000));
  Judge(r);
  ASSERT_THAT(r.invalid, SizeIs(1));
  // In a longer run only the p99.9 shows it.
  LoadResult longer = RunWithLag(200'000, 1000, stopped(4000, 1000));
  Judge(longer);
  ASSERT_THAT(longer.invalid, SizeIs(1));
  EXPECT_THAT(longer.invalid[0], HasSubstr("p99.9"));
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

TEST(Judge, AllowsAQuarterOfThePercentileAsLag) {
  LoadResult r = GoodRun();
  r.send_lag.Record(microseconds(480), 20);
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
  r.send_lag.Record(microseconds(200), 20);
  Judge(r);
  EXPECT_TRUE(r.valid()) << "a p99 that since_sent corrects";
  r.send_lag.Record(microseconds(60), 40);
  Judge(r);
  EXPECT_FALSE(r.valid()) << "the p95";
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
  EXPECT_EQ(SamplesForInterval95(99), 563u);
  EXPECT_EQ(SamplesForInterval95(99.9), 5662u);
  EXPECT_GT(SamplesForInterval95(99, 0.6), 3 * 563u) << "alike neighbours are worth less";
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
