// SPDX-License-Identifier: Apache-2.0
//
// metrics_calls.h - counts of each method's calls: how many, how long, how they ended.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "curtail/base/clock.h"

namespace curtail::observe {

// A MetricsCalls counts the calls of a fixed number of methods. Thread-safe; Count() takes no lock and no memory.
class MetricsCalls {
 public:
  // The upper ends of the buckets in ns, 1, 2.5 and 5 of each power of ten from 10 us to 10 s; one more has the rest.
  static constexpr std::array<int64_t, 19> kBoundsNs = {
      10'000,      25'000,        50'000,        100'000,       250'000,       500'000,     1'000'000,
      2'500'000,   5'000'000,     10'000'000,    25'000'000,    50'000'000,    100'000'000, 250'000'000,
      500'000'000, 1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000};
  static constexpr size_t kBuckets = kBoundsNs.size() + 1;
  // gRPC's status codes, OK first.
  static constexpr size_t kCodes = 17;

  struct Counts {
    std::array<uint64_t, kBuckets> buckets{};
    std::array<uint64_t, kCodes> codes{};
    Nanos sum{0};
  };

  explicit MetricsCalls(size_t methods);

  // A call of the method has ended. REQUIRES: method < size(). A code that gRPC does not have counts as UNKNOWN.
  void Count(size_t method, Nanos duration, int code) {
    Method& counts = methods_[method];
    counts.buckets[BucketOf(duration)].fetch_add(1, std::memory_order_relaxed);
    counts.sum_ns.fetch_add(duration.count(), std::memory_order_relaxed);
    if (code != 0) [[unlikely]]
      CountFailure(counts, code);
  }

  // The counts of a method so far. Calls that end meanwhile may be in some of them.
  Counts Read(size_t method) const;
  size_t size() const { return size_; }

  static size_t BucketOf(Nanos duration) {
    const auto ns = static_cast<uint64_t>(duration.count() > 0 ? duration.count() : 0);
    const size_t bucket = kFirstOfWidth[static_cast<size_t>(std::bit_width(ns))];
    return bucket + (bucket < kBoundsNs.size() && static_cast<int64_t>(ns) > kBoundsNs[bucket] ? 1 : 0);
  }

 private:
  struct alignas(64) Method {
    // Atomic, relaxed: they order nothing. Written by threads that answer, read by scrapes.
    std::array<std::atomic<uint64_t>, kBuckets> buckets{};
    std::atomic<int64_t> sum_ns{0};
    std::array<std::atomic<uint64_t>, kCodes - 1> failures{};  // from CANCELLED on
  };

  // By the number of bits of a duration in ns: the first bucket that may have it. At most one bound lies between powers
  // of two, so the duration is in this bucket or in the next.
  static constexpr std::array<uint8_t, 65> kFirstOfWidth = [] {
    std::array<uint8_t, 65> first{};
    for (size_t width = 1; width < first.size(); ++width) {
      const uint64_t least = uint64_t{1} << (width - 1);
      while (first[width] < kBoundsNs.size() && static_cast<uint64_t>(kBoundsNs[first[width]]) < least) {
        ++first[width];
      }
    }
    return first;
  }();

  static void CountFailure(Method& method, int code);

  const size_t size_;
  const std::unique_ptr<Method[]> methods_;
};

}  // namespace curtail::observe
