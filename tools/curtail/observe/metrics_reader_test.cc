// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/metrics_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "curtail/observe/metrics/metrics_text.h"

namespace curtail::tool {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(MetricsReader, ReadsMetricsThatAServerWrites) {
  observe::MetricsText text(observe::MetricsFormat::kPrometheus);
  text.Counter("calls_total", "Calls, \"all\" of them");
  text.Sample({{"path", "a\\b\"c\nd, e}"}, {"code", "OK"}}, uint64_t{18446744073709551615u});
  text.Sample({}, 0.25);
  text.Histogram("seconds", "How long");
  const std::array<double, 2> bounds = {0.001, 10};
  const std::array<uint64_t, 3> counts = {3, 1, 2};
  text.HistogramSample({{"m", "x"}}, bounds, counts, 1.5);
  const std::string written = text.Finish();
  const std::vector<MetricSample> samples = ReadMetrics(written);
  ASSERT_EQ(samples.size(), 7u);
  EXPECT_EQ(samples[0].name, "calls_total");
  EXPECT_EQ(samples[0].Label("path"), "a\\b\"c\nd, e}");
  EXPECT_EQ(samples[0].Label("code"), "OK");
  EXPECT_EQ(samples[0].Label("none"), "");
  EXPECT_EQ(samples[0].value, 18446744073709551615.0);
  EXPECT_EQ(samples[1].value, 0.25);
  EXPECT_EQ(samples[2].name, "seconds_bucket");
  EXPECT_EQ(BoundOf(samples[2]), 0.001);
  EXPECT_EQ(BoundOf(samples[4]), kInfinity);
  EXPECT_EQ(samples[4].value, 6);
  EXPECT_EQ(BoundOf(samples[0]), std::nullopt);
}

TEST(MetricsReader, LeavesOutLinesThatAreNoSamples) {
  for (const char* line :
       {"", "#", "# HELP a b", "a", "a ", " 1", "a{ 1", "a{b} 1", "a{b=\"c} 1", "a{b=\"c\\", "a{b=\"c\"",
        "a{b=\"c\"}1", "a{b=\"c\"d=\"e\"} 1", "a one", "a NaN", "{} 1"}) {
    EXPECT_TRUE(ReadMetrics(line).empty()) << line;
    const std::string between = std::string("x 1\n") + line + "\ny 2";
    EXPECT_EQ(ReadMetrics(between).size(), 2u) << line;
  }
  EXPECT_EQ(ReadMetrics("a{} 1 1700000000").at(0).value, 1);
  EXPECT_EQ(ReadMetrics("a{b=\"c\",} 1").at(0).Label("b"), "c");
}

TEST(MetricsReader, AQuantileIsInterpolatedWithinItsBucket) {
  const CumulatedBuckets buckets = {{0.001, 10}, {0.002, 10}, {0.004, 30}, {kInfinity, 40}};
  EXPECT_EQ(Quantile({}, 0.5), std::nullopt);
  EXPECT_EQ(Quantile({{1, 0}, {kInfinity, 0}}, 0.5), std::nullopt);
  EXPECT_DOUBLE_EQ(*Quantile(buckets, 0.25), 0.001);
  EXPECT_DOUBLE_EQ(*Quantile(buckets, 0.5), 0.003);
  EXPECT_DOUBLE_EQ(*Quantile(buckets, 0.75), 0.004);
  EXPECT_DOUBLE_EQ(*Quantile(buckets, 0.99), 0.004) << "beyond the last bound";
}

TEST(MetricsReader, BucketsSinceATimeBeginAnewAfterARestart) {
  const CumulatedBuckets before = {{1, 10}, {2, 20}};
  EXPECT_EQ(Since(before, {{1, 11}, {2, 25}}), (CumulatedBuckets{{1, 1}, {2, 5}}));
  EXPECT_EQ(Since(before, {{1, 3}, {2, 4}}), (CumulatedBuckets{{1, 3}, {2, 4}}));
  EXPECT_EQ(Since({}, before), before);
}

}  // namespace
}  // namespace curtail::tool
