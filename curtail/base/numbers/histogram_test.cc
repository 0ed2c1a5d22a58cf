// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/histogram.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "curtail/base/rng.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::hours;

// The promise: `reported` is never below the sample, and at most 1/128 above it.
void ExpectWithinBound(Nanos sample, Nanos reported) {
  EXPECT_GE(reported, sample);
  EXPECT_LE(static_cast<double>((reported - sample).count()), static_cast<double>(sample.count()) / 128.0);
}

TEST(Histogram, EmptyIsAllZero) {
  const Histogram h;
  EXPECT_TRUE(h.empty());
  EXPECT_EQ(h.Percentile(99), Nanos(0));
  EXPECT_EQ(h.min(), Nanos(0));
  EXPECT_EQ(h.max(), Nanos(0));
  EXPECT_EQ(h.mean(), Nanos(0));
  EXPECT_TRUE(h.Buckets().empty());
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram h;
  for (int v = 0; v < 256; ++v) h.Record(Nanos(v));
  for (int v = 0; v < 256; ++v) EXPECT_EQ(h.ValueAtRank(v + 1), Nanos(v));
  EXPECT_EQ(h.mean(), Nanos(128));
}

TEST(Histogram, EveryPowerOfTwoKeepsTheBound) {
  for (int bit = 0; bit < 42; ++bit) {
    for (int64_t delta : {-1, 0, 1}) {
      const Nanos sample((int64_t{1} << bit) + delta);
      Histogram h;
      h.Record(sample);
      h.Record(Histogram::kMaxValue);  // so that the answer is not just the exact maximum
      ExpectWithinBound(sample, h.ValueAtRank(1));
    }
  }
}

TEST(Histogram, PercentilesAreWithinTheBoundOfSortedSamples) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Histogram h;
    std::vector<Nanos> samples;
    const size_t n = 1 + rng.Below(5000);
    for (size_t i = 0; i < n; ++i) {
      // Log-uniform from 1 ns to 2^41 ns: every bucket width is met.
      samples.emplace_back(static_cast<int64_t>(std::exp2(rng.Uniform01() * 41)));
      h.Record(samples.back());
    }
    std::sort(samples.begin(), samples.end());
    for (double p : {0.0, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(p * n / 100 - 1e-6)));
      ExpectWithinBound(samples[rank - 1], h.Percentile(p));
    }
    EXPECT_EQ(h.min(), samples.front());
    EXPECT_EQ(h.max(), samples.back());
    EXPECT_EQ(h.Percentile(100), samples.back());
  }
}

TEST(Histogram, RankIsTheNearestRank) {
  EXPECT_EQ(Histogram::RankOf(99.9, 1000), 999u);
  EXPECT_EQ(Histogram::RankOf(99, 100), 99u);
  EXPECT_EQ(Histogram::RankOf(99, 101), 100u);
  EXPECT_EQ(Histogram::RankOf(50, 1), 1u);
  EXPECT_EQ(Histogram::RankOf(0, 10), 1u);
  EXPECT_EQ(Histogram::RankOf(100, 10), 10u);
  EXPECT_EQ(Histogram::RankOf(99.99, 50'000'000), 49'995'000u);
}

TEST(Histogram, ClampsAndCountsOutliers) {
  Histogram h;
  h.Record(hours(2));
  h.Record(Nanos(-5));
  EXPECT_EQ(h.count(), 2u);
  EXPECT_EQ(h.clamped(), 1u);
  EXPECT_EQ(h.max(), Histogram::kMaxValue);
  EXPECT_EQ(h.min(), Nanos(0));
  h.Record(hours(1));
  EXPECT_EQ(h.clamped(), 1u) << "an hour is in range";
}

TEST(Histogram, MergeEqualsRecordingTogether) {
  Rng rng(5);
  Histogram a, b, both;
  for (int i = 0; i < 10'000; ++i) {
    const Nanos v(static_cast<int64_t>(rng.Below(uint64_t{1} << (1 + rng.Below(43)))));
    (i % 3 == 0 ? a : b).Record(v);
    both.Record(v);
  }
  a.Merge(b);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.clamped(), both.clamped());
  EXPECT_EQ(a.min(), both.min());
  EXPECT_EQ(a.max(), both.max());
  EXPECT_NEAR(static_cast<double>(a.mean().count()), static_cast<double>(both.mean().count()), 1);
  for (int p = 0; p <= 100; ++p) EXPECT_EQ(a.Percentile(p), both.Percentile(p));
  Histogram empty;
  empty.Merge(a);
  EXPECT_EQ(empty.min(), a.min());
}

TEST(Histogram, BucketsTileTheRangeAndHoldEverything) {
  Rng rng(6);
  Histogram h;
  for (int i = 0; i < 200'000; ++i) h.Record(Nanos(static_cast<int64_t>(rng.Below(4096))));
  uint64_t total = 0;
  Nanos next(0);
  for (const Histogram::Bucket& b : h.Buckets()) {
    EXPECT_EQ(b.low, next) << "no gap, no overlap";
    EXPECT_GE(b.high, b.low);
    next = b.high + Nanos(1);
    total += b.count;
  }
  EXPECT_EQ(next, Nanos(4096));
  EXPECT_EQ(total, h.count());
}

Histogram::Totals TotalsOf(const Histogram& h) { return {h.min(), h.max(), h.mean(), h.clamped()}; }

TEST(Histogram, ComesBackFromItsBuckets) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Histogram h;
    const size_t n = rng.Below(5000);
    for (size_t i = 0; i < n; ++i) h.Record(Nanos(static_cast<int64_t>(std::exp2(rng.Uniform01() * 42.5))));
    const std::optional<Histogram> again = Histogram::FromBuckets(h.Buckets(), TotalsOf(h));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->count(), h.count());
    EXPECT_EQ(again->clamped(), h.clamped());
    EXPECT_EQ(again->min(), h.min());
    EXPECT_EQ(again->max(), h.max());
    EXPECT_EQ(again->mean(), h.mean());
    for (uint64_t rank = 1; rank <= n; ++rank) EXPECT_EQ(again->ValueAtRank(rank), h.ValueAtRank(rank));
  }
}

TEST(Histogram, BucketsThatCannotBeAreRefused) {
  Histogram h;
  for (int64_t v : {3, 500, 70'000}) h.Record(Nanos(v), 2);
  const std::vector<Histogram::Bucket> good = h.Buckets();
  const Histogram::Totals totals = TotalsOf(h);
  ASSERT_TRUE(Histogram::FromBuckets(good, totals).has_value());
  std::vector<Histogram::Bucket> shifted = good, empty_one = good, backwards = good, outside = good,
                                 many = good;
  ++shifted[1].low;
  empty_one[1].count = 0;
  std::swap(backwards[0], backwards[1]);
  outside[2].low = Nanos(-1);
  for (Histogram::Bucket& b : many) b.count = ~uint64_t{0} / 2;
  for (const auto& bad : {shifted, empty_one, backwards, outside, many}) {
    EXPECT_FALSE(Histogram::FromBuckets(bad, totals).has_value());
  }
  EXPECT_FALSE(Histogram::FromBuckets(good, {Nanos(2), totals.max, totals.mean, 0}).has_value());
  EXPECT_FALSE(Histogram::FromBuckets(good, {totals.min, Nanos(80'000), totals.mean, 0}).has_value());
  EXPECT_FALSE(Histogram::FromBuckets(good, {totals.min, totals.max, Nanos(1), 0}).has_value());
  EXPECT_FALSE(Histogram::FromBuckets(good, {totals.min, totals.max, totals.mean, 1}).has_value());
  EXPECT_FALSE(Histogram::FromBuckets({}, {Nanos(0), Nanos(0), Nanos(0), 1}).has_value());
}

TEST(Histogram, RecordManyAndClear) {
  Histogram h;
  h.Record(Nanos(10), 99);
  h.Record(Nanos(1000), 1);
  h.Record(Nanos(7), 0);
  EXPECT_EQ(h.count(), 100u);
  EXPECT_EQ(h.min(), Nanos(10));
  EXPECT_EQ(h.Percentile(99), Nanos(10));
  EXPECT_EQ(h.Percentile(99.5), Nanos(1000));
  h.Clear();
  EXPECT_TRUE(h.empty());
  EXPECT_EQ(h.Percentile(50), Nanos(0));
}

}  // namespace
}  // namespace curtail
