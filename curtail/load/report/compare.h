// SPDX-License-Identifier: Apache-2.0
//
// compare.h - tells if two load reports differ, or only by noise.
//
// Runs of one plan differ by far more than samples within a run: each has its own connections,
// placement of threads and neighbours. With at least four valid runs on each side, a run therefore
// counts as one observation (Mann and Whitney's test). With fewer, Compare() uses the 95 %
// intervals within the runs. They are too narrow for this, and a warning says so. Pure functions;
// any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "curtail/load/report/result.h"
#include "curtail/load/report/run_metrics.h"

namespace curtail {

enum class ChangeVerdict { kBetter, kWorse, kNoise, kTooFew };

// One number of both reports; B is judged against A.
struct MetricChange {
  RunMetric metric;
  double a = 0;  // medians over runs, or of all samples together if there are few runs
  double b = 0;
  std::optional<double> ratio;             // b / a; absent where a is 0
  std::optional<Interval> ratio_interval;  // 95 %; absent if it cannot be computed
  std::optional<double> p;                 // of the test between runs
  ChangeVerdict verdict = ChangeVerdict::kTooFew;
};

struct Comparison {
  size_t runs_a = 0;  // valid ones
  size_t runs_b = 0;
  bool between_runs = false;  // the test is over runs; otherwise over the samples within them
  std::vector<MetricChange> changes;
  std::vector<std::string> warnings;

  bool worse() const;
};

// p50, p90, p99, p99.9, mean, rate of good replies, share of errors, CPU of the generator. Void
// runs are left out. Each metric is tested for itself at 5 %, so among eight one may differ by
// chance now and then.
Comparison Compare(const LoadReport& a, const LoadReport& b);

// A table and the warnings; ends with a newline.
std::string ComparisonText(const Comparison& comparison);
// One JSON object; ends with a newline. Numbers have the units that their keys name.
std::string ComparisonJson(const Comparison& comparison);

}  // namespace curtail
