// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/histogram.h"

#include <algorithm>
#include <cmath>
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
