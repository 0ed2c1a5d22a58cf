// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/latency_sketch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace curtail {
namespace {

constexpr int kFirstBit = 10;  // 1.024 us
constexpr int kStepBits = 4;   // 16 steps each time the latency doubles

// The lower bound of a bucket; that of the one after the last, too.
double LowUs(size_t bucket) {
  if (bucket == 0) return 0;
  const size_t step = bucket - 1;
  return std::ldexp(16.0 + static_cast<double>(step % 16),
                    kFirstBit - kStepBits + static_cast<int>(step / 16)) *
         1e-3;
}

}  // namespace

size_t LatencySketch::BucketOf(Nanos latency) {
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(latency.count(), 0));
  if (ns < uint64_t{1} << kFirstBit) return 0;
  const int top = std::bit_width(ns) - 1;
  const size_t step = static_cast<size_t>(ns >> (top - kStepBits)) & 15;
  return std::min(1 + static_cast<size_t>(top - kFirstBit) * 16 + step, kBuckets - 1);
}

void LatencySketch::AddBucket(size_t bucket, double weight) {
  weights_[bucket] += static_cast<float>(weight);
  weight_ += weight;
  sum_us_ += weight * (LowUs(bucket) + LowUs(bucket + 1)) / 2;
}

void LatencySketch::Merge(const LatencySketch& other) {
  for (size_t i = 0; i < kBuckets; ++i) weights_[i] += other.weights_[i];
  weight_ += other.weight_;
  sum_us_ += other.sum_us_;
}

void LatencySketch::Scale(double factor) {
  for (float& weight : weights_) weight *= static_cast<float>(factor);
  weight_ *= factor;
  sum_us_ *= factor;
}

double LatencySketch::QuantileUs(double share) const {
  const double wanted = std::clamp(share, 0.0, 1.0) * weight_;
  double below = 0;
  size_t last = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    const double here = static_cast<double>(weights_[i]);
    if (here <= 0) continue;
    if (below + here >= wanted)
      return LowUs(i) + (LowUs(i + 1) - LowUs(i)) * std::max(wanted - below, 0.0) / here;
    below += here;
    last = i + 1;
  }
  return last == 0 ? 0 : LowUs(last);
}

double LatencySketch::P99AtLeastUs() const {
  return weight_ > 0 ? QuantileUs(0.99 - 2 * std::sqrt(0.99 * 0.01 / weight_)) : 0;
}

}  // namespace curtail
