// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: a value below 2^(kSubBits+1) is its own bucket; above, every power of two is cut into 2^kSubBits
// buckets of equal width, so the bucket's index is the exponent followed by the kSubBits bits below the
// leading one. A percentile is given as its bucket's upper end: latencies are never understated.
#include "curtail/base/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace curtail {
namespace {

constexpr int kSubBits = 7;
constexpr int kMaxBits = 42;
constexpr uint64_t kMaxCount = uint64_t{1}
                               << 53;  // what FromBuckets() takes: sums of counts stay exact as doubles
constexpr size_t kBuckets = (static_cast<size_t>(kMaxBits - kSubBits) + 1) << kSubBits;

}  // namespace

size_t Histogram::IndexOf(uint64_t value) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - (kSubBits + 1));
  return (static_cast<size_t>(shift) << kSubBits) + (value >> shift);
}

Nanos Histogram::LowOf(size_t index) {
  if (index < (size_t{2} << kSubBits)) return Nanos(static_cast<int64_t>(index));
  const size_t shift = (index >> kSubBits) - 1;
  return Nanos(static_cast<int64_t>((index - (shift << kSubBits)) << shift));
}

Histogram::Histogram() : counts_(kBuckets) {}

std::optional<Histogram> Histogram::FromBuckets(const std::vector<Bucket>& buckets, const Totals& totals) {
  Histogram h;
  size_t next = 0;  // the first index that may come
  for (const Bucket& b : buckets) {
    if (b.count == 0 || b.count > kMaxCount - h.count_ || b.low < Nanos::zero() || b.low > kMaxValue)
      return {};
    const size_t index = IndexOf(static_cast<uint64_t>(b.low.count()));
    if (index < next || LowOf(index) != b.low || HighOf(index) != b.high) return {};
    h.counts_[index] = b.count;
    h.count_ += b.count;
    next = index + 1;
  }
  if (buckets.empty()) return totals.clamped == 0 ? std::optional(h) : std::nullopt;
  const auto within = [](Nanos value, const Bucket& b) { return value >= b.low && value <= b.high; };
  if (!within(totals.min, buckets.front()) || !within(totals.max, buckets.back())) return {};
  if (totals.mean < totals.min || totals.mean > totals.max) return {};
  if (totals.clamped > 0 && (totals.max != kMaxValue || totals.clamped > buckets.back().count)) return {};
  h.min_ = totals.min;
  h.max_ = totals.max;
  h.sum_ = static_cast<double>(totals.mean.count()) * static_cast<double>(h.count_);
  h.clamped_ = totals.clamped;
  return h;
}

void Histogram::Record(Nanos value, uint64_t times) {
  if (times == 0) return;
  if (value > kMaxValue) value = kMaxValue, clamped_ += times;
  value = std::max(value, Nanos::zero());
  counts_[IndexOf(static_cast<uint64_t>(value.count()))] += times;
  count_ += times;
  sum_ += static_cast<double>(value.count()) * static_cast<double>(times);
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  clamped_ += other.clamped_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void Histogram::Clear() { *this = Histogram(); }

Nanos Histogram::mean() const {
  return count_ == 0 ? Nanos::zero() : Nanos(std::llround(sum_ / static_cast<double>(count_)));
}

Nanos Histogram::ValueAtRank(uint64_t rank) const {
  if (count_ == 0) return Nanos::zero();
  rank = std::clamp<uint64_t>(rank, 1, count_);
  uint64_t seen = 0;
  size_t index = 0;
  while ((seen += counts_[index]) < rank) ++index;
  return std::clamp(HighOf(index), min_, max_);
}

uint64_t Histogram::RankOf(double percent, uint64_t count) {
  const double n = static_cast<double>(count);
  // 99.9 % of 1000 must be rank 999, though 99.9 is not a binary fraction.
  const double rank = std::ceil(std::clamp(percent, 0.0, 100.0) * n / 100 - 1e-6);
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::max(rank, 0.0)));
}

std::vector<Histogram::Bucket> Histogram::Buckets() const {
  std::vector<Bucket> result;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (counts_[i] != 0) result.push_back({LowOf(i), HighOf(i), counts_[i]});
  }
  return result;
}

}  // namespace curtail
