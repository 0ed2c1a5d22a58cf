// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/metrics/metrics_text.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace curtail::observe {
namespace {

constexpr std::array<double, 3> kBounds = {0.00001, 0.5, 1};
constexpr std::array<uint64_t, 4> kCounts = {2, 0, 3, 1};

std::string SomeMetrics(MetricsFormat format) {
  MetricsText text(format);
  text.Counter("a_total", "All of \\ them\n\"twice\"");
  text.Sample({{"name", "a\\b\"c\nd"}, {"empty", ""}}, uint64_t{18446744073709551615u});
  text.Gauge("b", "B");
  text.Sample({}, 0.25);
  text.Info("c_info", "C");
  text.Sample({{"config", "SIB1"}}, uint64_t{1});
  text.Histogram("d_seconds", "D");
  text.HistogramSample({{"m", "x"}}, kBounds, kCounts, 4.5);
  text.HistogramSample({}, kBounds, kCounts, 4.5);
  return text.Finish();
}

TEST(MetricsText, IsThatOfPrometheus) {
  EXPECT_EQ(SomeMetrics(MetricsFormat::kPrometheus), R"(# HELP a_total All of \\ them\n"twice"
# TYPE a_total counter
a_total{name="a\\b\"c\nd",empty=""} 18446744073709551615
# HELP b B
# TYPE b gauge
b 0.25
# HELP c_info C
# TYPE c_info gauge
c_info{config="SIB1"} 1
# HELP d_seconds D
# TYPE d_seconds histogram
d_seconds_bucket{m="x",le="1e-05"} 2
d_seconds_bucket{m="x",le="0.5"} 2
d_seconds_bucket{m="x",le="1.0"} 5
d_seconds_bucket{m="x",le="+Inf"} 6
d_seconds_sum{m="x"} 4.5
d_seconds_count{m="x"} 6
d_seconds_bucket{le="1e-05"} 2
d_seconds_bucket{le="0.5"} 2
d_seconds_bucket{le="1.0"} 5
d_seconds_bucket{le="+Inf"} 6
d_seconds_sum 4.5
d_seconds_count 6
)");
}

TEST(MetricsText, NamesFamiliesAsOpenMetricsDoes) {
  const std::string text = SomeMetrics(MetricsFormat::kOpenMetrics);
  EXPECT_TRUE(text.starts_with("# HELP a All of \\\\ them\\n\\\"twice\\\"\n# TYPE a counter\na_total{"))
      << text;
  EXPECT_NE(text.find("# TYPE c info\nc_info{config=\"SIB1\"} 1\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("d_seconds_count 6\n# EOF\n")) << text;
}

TEST(MetricsText, ShowsExemplarsInOpenMetricsOnly) {
  const std::array<MetricExemplar, 4> exemplars = {
      {{},
       {.trace = "ab\"c", .value = 0.25, .unix_s = 1520879607.789},
       {},
       {.trace = "1f", .value = 2, .unix_s = 3}}};
  const auto written = [&](MetricsFormat format) {
    MetricsText text(format);
    text.Histogram("d_seconds", "D");
    text.HistogramSample({}, kBounds, kCounts, 4.5, exemplars);
    return text.Finish();
  };
  EXPECT_EQ(written(MetricsFormat::kOpenMetrics), R"(# HELP d_seconds D
# TYPE d_seconds histogram
d_seconds_bucket{le="1e-05"} 2
d_seconds_bucket{le="0.5"} 2 # {trace_id="ab\"c"} 0.25 1520879607.789
d_seconds_bucket{le="1.0"} 5
d_seconds_bucket{le="+Inf"} 6 # {trace_id="1f"} 2.0 3.0
d_seconds_sum 4.5
d_seconds_count 6
# EOF
)");
  EXPECT_EQ(written(MetricsFormat::kPrometheus).find(" # "), std::string::npos);
}

TEST(MetricsText, WritesNumbersThatReadAsTheSame) {
  MetricsText text(MetricsFormat::kPrometheus);
  text.Gauge("a", "A");
  for (const double value : {1e300, -2.0, 0.1, std::numeric_limits<double>::infinity(), std::nan("")}) {
    text.Sample({}, value);
  }
  EXPECT_TRUE(text.Finish().ends_with("\na 1e+300\na -2.0\na 0.1\na +Inf\na NaN\n"));
}

TEST(MetricsText, FormatIsThatOfTheAcceptHeader) {
  EXPECT_EQ(MetricsFormatFor(""), MetricsFormat::kPrometheus);
  EXPECT_EQ(MetricsFormatFor("text/plain;version=0.0.4;q=0.5,*/*;q=0.1"), MetricsFormat::kPrometheus);
  // That of Prometheus 2.42.
  EXPECT_EQ(MetricsFormatFor(
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
                "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            MetricsFormat::kOpenMetrics);
}

}  // namespace
}  // namespace curtail::observe
