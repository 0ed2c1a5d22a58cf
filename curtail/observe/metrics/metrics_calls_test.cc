// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/metrics/metrics_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

namespace curtail::observe {
namespace {

size_t SlowBucketOf(int64_t ns) {
  const auto& bounds = MetricsCalls::kBoundsNs;
  return static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), ns) - bounds.begin());
}

TEST(MetricsCalls, BucketIsTheFirstWhoseBoundIsNotBelow) {
  EXPECT_TRUE(std::is_sorted(MetricsCalls::kBoundsNs.begin(), MetricsCalls::kBoundsNs.end()));
  EXPECT_EQ(MetricsCalls::BucketOf(Nanos(-5)), 0u);
  std::vector<int64_t> edges = {0, 1, INT64_MAX};
  for (const int64_t bound : MetricsCalls::kBoundsNs)
    edges.insert(edges.end(), {bound - 1, bound, bound + 1});
  for (int bit = 1; bit < 63; ++bit) {
    edges.insert(edges.end(), {(int64_t{1} << bit) - 1, int64_t{1} << bit, (int64_t{1} << bit) + 1});
  }
  for (const int64_t ns : edges) EXPECT_EQ(MetricsCalls::BucketOf(Nanos(ns)), SlowBucketOf(ns)) << ns;
}

TEST(MetricsCalls, CountsEachMethodAlone) {
  MetricsCalls calls(2);
  calls.Count(0, std::chrono::microseconds(30), 0);
  calls.Count(1, std::chrono::milliseconds(3), 5);
  calls.Count(1, std::chrono::seconds(100), 99);  // no code of gRPC's
  EXPECT_EQ(calls.Read(0).codes[0], 1u);
  EXPECT_EQ(calls.Read(0).sum, std::chrono::microseconds(30));
  EXPECT_EQ(calls.Read(0).buckets[2], 1u);
  const MetricsCalls::Counts second = calls.Read(1);
  EXPECT_EQ(second.codes[0], 0u);
  EXPECT_EQ(second.codes[5], 1u);
  EXPECT_EQ(second.codes[2], 1u);
  EXPECT_EQ(second.buckets.back(), 1u);
  EXPECT_EQ(second.sum, std::chrono::milliseconds(100'003));
}

// No count is lost however many threads count, and a reader never sees more answers by status than calls.
TEST(MetricsCalls, CountsOfManyThreadsAddUp) {
  constexpr int kThreads = 4, kEach = 2000;
  MetricsCalls calls(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&calls] {
      for (int i = 0; i < kEach; ++i) calls.Count(0, Nanos(1000 * i), i % 4 == 0 ? 14 : 0);
    });
  }
  const auto sum = [](const auto& counts) {
    return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  };
  for (int i = 0; i < 100; ++i) {
    const MetricsCalls::Counts counts = calls.Read(0);
    EXPECT_LE(counts.codes[0], sum(counts.buckets));
  }
  for (std::thread& thread : threads) thread.join();
  const MetricsCalls::Counts counts = calls.Read(0);
  EXPECT_EQ(sum(counts.buckets), uint64_t{kThreads * kEach});
  EXPECT_EQ(sum(counts.codes), uint64_t{kThreads * kEach});
  EXPECT_EQ(counts.codes[14], uint64_t{kThreads * kEach / 4});
  EXPECT_EQ(counts.sum, kThreads * Nanos(1000) * (kEach * (kEach - 1) / 2));
}

}  // namespace
}  // namespace curtail::observe
