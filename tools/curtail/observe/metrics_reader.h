// SPDX-License-Identifier: Apache-2.0
//
// metrics_reader.h - reads metrics in Prometheus' text format, and quantiles of their histograms. Pure functions; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace curtail::tool {

struct MetricSample {
  std::string_view name;  // within the text that was read
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;

  // Empty without that label.
  std::string_view Label(std::string_view name) const;
};

// The samples of a text; lines that are none are left out.
std::vector<MetricSample> ReadMetrics(std::string_view text);

// Calls up to each bound, in seconds, as Prometheus has them: a bucket counts those of the buckets below, too.
using CumulatedBuckets = std::map<double, double>;

// The bound in the label "le" of a bucket.
std::optional<double> BoundOf(const MetricSample& bucket);
// The calls that were counted since `before`. Buckets that have fallen, as after a restart, count from zero.
CumulatedBuckets Since(const CumulatedBuckets& before, const CumulatedBuckets& now);
// The time that the share `q` of the calls did not exceed, by interpolation within its bucket; none without calls. Beyond
// the last finite bound it is that bound.
std::optional<double> Quantile(const CumulatedBuckets& buckets, double q);

}  // namespace curtail::tool
