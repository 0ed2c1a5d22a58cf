// SPDX-License-Identifier: Apache-2.0
//
// latency_sketch.h - a small weighted histogram of latencies: counts that can fade.
//
// For policies that keep one for each config and load. curtail/base/histogram.h is twenty times as
// large, exact, and cannot forget. Covers 1 us to 137 s in steps of at most 1/16; quantiles are
// interpolated within a step.
#pragma once

#include <array>
#include <cstddef>

#include "curtail/base/clock.h"

namespace curtail {

// A LatencySketch counts latencies with weights. Thread-compatible; copyable.
class LatencySketch {
 public:
  static constexpr size_t kBuckets = 27 * 16 + 1;  // the first one is below 1.024 us

  static size_t BucketOf(Nanos latency);

  void Add(Nanos latency, double weight = 1) { AddBucket(BucketOf(latency), weight); }
  // REQUIRES: bucket < kBuckets, weight >= 0.
  void AddBucket(size_t bucket, double weight);
  void Merge(const LatencySketch& other);
  // Multiplies all weights. REQUIRES: factor >= 0.
  void Scale(double factor);

  double weight() const { return weight_; }
  // The latency below which this share of the weight lies, in microseconds; zero when empty.
  double QuantileUs(double share) const;
  double MeanUs() const { return weight_ > 0 ? sum_us_ / weight_ : 0; }
  // The least p99 that so many samples allow: the quantile two standard errors of the rank lower.
  double P99AtLeastUs() const;

 private:
  std::array<float, kBuckets> weights_{};
  double weight_ = 0;
  double sum_us_ = 0;  // from the middles of the buckets
};

}  // namespace curtail
