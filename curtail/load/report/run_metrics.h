// SPDX-License-Identifier: Apache-2.0
//
// run_metrics.h - the numbers that compare runs, and their spread between runs of one plan.
//
// Pure functions of plain values; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "curtail/load/report/result.h"
#include "curtail/load/report/statistics.h"

namespace curtail {

// A RunMetric is one number of a run.
struct RunMetric {
  const char* key;    // with the unit, as in "p99_us"
  const char* label;  // for people: "p99"
  const char* unit;   // "us", "/s", "%"; percentages of `value` are 100 times it
  bool lower_is_better;
  double percentile;  // of LoadResult::all; 0 if `value` is not a percentile
  double (*value)(const LoadResult& run);
};

// p50, p90, p99, p99.9, mean, good and sent rate, share of errors, CPU of the generator.
std::span<const RunMetric> RunMetrics();

// The spread of values of several runs. Both intervals have 95 % confidence.
struct Spread {
  size_t runs = 0;
  double median = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  // By order statistics, whatever the distribution; absent below 6 runs.
  std::optional<Interval> median_interval;
  // By Student's t, as if the values were normally distributed; absent below 3 runs. Not below 0 if
  // no value is.
  std::optional<Interval> mean_interval;
};
// REQUIRES: not empty.
Spread SpreadOf(const std::vector<double>& values);

// The values of `metric` in the runs that are not void.
std::vector<double> UsableValues(const LoadReport& report, const RunMetric& metric);

// The latency of all runs in one.
Histogram MergedLatency(const LoadReport& report);

}  // namespace curtail
