// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/run_metrics.h"
#include "curtail/base/clock.h"

#include <algorithm>
#include <numeric>

namespace curtail {
namespace {

constexpr RunMetric kMetrics[] = {
    {"p50_us", "p50", "us", true, 50, [](const LoadResult& r) { return InMicros(r.all.Percentile(50)); }},
    {"p90_us", "p90", "us", true, 90, [](const LoadResult& r) { return InMicros(r.all.Percentile(90)); }},
    {"p99_us", "p99", "us", true, 99, [](const LoadResult& r) { return InMicros(r.all.Percentile(99)); }},
    {"p99_9_us", "p99.9", "us", true, 99.9,
     [](const LoadResult& r) { return InMicros(r.all.Percentile(99.9)); }},
    {"mean_us", "mean", "us", true, 0, [](const LoadResult& r) { return InMicros(r.all.mean()); }},
    {"good_per_s", "good rate", "/s", false, 0, [](const LoadResult& r) { return r.good_per_s; }},
    {"sent_per_s", "sent rate", "/s", false, 0, [](const LoadResult& r) { return r.sent_per_s; }},
    {"error_share", "errors", "%", true, 0, [](const LoadResult& r) { return r.failed_fraction(); }},
    {"generator_cpu_us_per_request", "generator CPU", "us", true, 0,
     [](const LoadResult& r) { return r.sent == 0 ? 0 : InMicros(r.cpu) / static_cast<double>(r.sent); }},
};

}  // namespace

std::span<const RunMetric> RunMetrics() { return kMetrics; }

Spread SpreadOf(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  Spread s;
  s.runs = values.size();
  s.median = Median(values);
  s.min = *least;
  s.max = *most;
  s.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  s.median_interval = MedianInterval(values, 0.95);
  if (values.size() >= 3) s.mean_interval = MeanInterval(values, 0.95);
  if (s.mean_interval && s.min >= 0) s.mean_interval->low = std::max(0.0, s.mean_interval->low);
  return s;
}

std::vector<double> UsableValues(const LoadReport& report, const RunMetric& metric) {
  std::vector<double> values;
  for (const LoadResult& run : report.runs) {
    if (run.valid()) values.push_back(metric.value(run));
  }
  return values;
}

Histogram MergedLatency(const LoadReport& report) {
  Histogram all;
  for (const LoadResult& run : report.runs) all.Merge(run.all);
  return all;
}

}  // namespace curtail
