// SPDX-License-Identifier: Apache-2.0
//
// histogram.h - counts of durations in buckets whose width grows with the value.
//
// Use it to record latencies without keeping samples. It takes 36 KiB whatever is recorded, and
// some nanoseconds a value. Every percentile is at most 1/128 (0.8 %) above the true sample. Values
// under 256 ns are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "curtail/base/clock.h"

namespace curtail {

// A Histogram is a log-linear histogram of nanoseconds. Thread-compatible; copyable.
class Histogram {
 public:
  // Larger values (above 73 minutes) are counted as this one, and in clamped().
  static constexpr Nanos kMaxValue{(int64_t{1} << 42) - 1};

  // A bucket counts values in [low, high].
  struct Bucket {
    Nanos low;
    Nanos high;
    uint64_t count;
  };

  // Values that Buckets() does not hold.
  struct Totals {
    Nanos min;
    Nanos max;
    Nanos mean;
    uint64_t clamped;
  };

  Histogram();
  // The histogram with these non-empty buckets, in ascending order, and totals. It equals the one
  // they came from (the mean to the nanosecond). Absent when no histogram can have them.
  static std::optional<Histogram> FromBuckets(const std::vector<Bucket>& buckets, const Totals& totals);

  // Counts `value`; a negative one as zero.
  void Record(Nanos value) { Record(value, 1); }
  void Record(Nanos value, uint64_t times);
  // Adds the counts of `other`.
  void Merge(const Histogram& other);
  void Clear();

  uint64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  uint64_t clamped() const { return clamped_; }
  // Exact (before bucketing, after clamping); zero when empty.
  Nanos min() const { return count_ == 0 ? Nanos::zero() : min_; }
  Nanos max() const { return count_ == 0 ? Nanos::zero() : max_; }
  Nanos mean() const;

  // The value of the sample of this rank in ascending order, 1 to count(). Ranks outside are
  // brought into that range. The result is never below the true value and at most 1/128 above it.
  // Zero when empty.
  Nanos ValueAtRank(uint64_t rank) const;
  // The nearest-rank percentile, `percent` from 0 to 100: the sample of rank ceil(percent / 100 *
  // count()).
  Nanos Percentile(double percent) const { return ValueAtRank(RankOf(percent, count_)); }
  static uint64_t RankOf(double percent, uint64_t count);

  // The buckets that are not empty, in ascending order.
  std::vector<Bucket> Buckets() const;

 private:
  static size_t IndexOf(uint64_t value);
  static Nanos LowOf(size_t index);
  static Nanos HighOf(size_t index) { return LowOf(index + 1) - Nanos(1); }

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t clamped_ = 0;
  double sum_ = 0;  // ns
  Nanos min_ = kMaxValue;
  Nanos max_{0};
};

}  // namespace curtail
