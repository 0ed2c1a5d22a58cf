// SPDX-License-Identifier: Apache-2.0
//
// slow_calls.h - which calls are slow: longer than a limit, or than the running p99.9 of their method.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "curtail/base/clock.h"

namespace curtail::observe {

// A SlowCalls counts the durations of each method's calls in buckets of an eighth of a power of two, so a limit that it
// finds is up to 12.5 % above the p99.9. Thread-safe; IsSlow() takes no lock and no memory.
class SlowCalls {
 public:
  // Calls of a method before its p99.9 is known. As many form the window of the next.
  static constexpr uint64_t kWindow = 10'000;

  // `limit` above zero: calls that take longer are slow, and nothing is counted.
  SlowCalls(size_t methods, Nanos limit);

  // Counts a call. True if it is slow. REQUIRES: method < methods.
  bool IsSlow(size_t method, Nanos duration) {
    if (limit_ > Nanos::zero()) return duration > limit_;
    Method& counts = methods_[method];
    counts.buckets[BucketOf(duration)].fetch_add(1, std::memory_order_relaxed);
    return duration.count() > counts.limit_ns.load(std::memory_order_relaxed);
  }

  // Finds the limits anew for methods that have had kWindow calls since. One thread.
  void Update();
  // The limit of a method; Nanos::max() before it is known.
  Nanos limit(size_t method) const {
    return methods_ == nullptr ? limit_ : Nanos(methods_[method].limit_ns.load(std::memory_order_relaxed));
  }

  // The bucket has durations from its own bound to that of the next, in ns.
  static constexpr size_t kBuckets = 8 * 40;
  static size_t BucketOf(Nanos duration) {
    const auto ns = static_cast<uint64_t>(std::max<int64_t>(duration.count(), 8));
    const auto shift = static_cast<size_t>(std::bit_width(ns)) - 4;
    return std::min(shift * 8 + ((ns >> shift) & 7), kBuckets - 1);
  }
  static int64_t BoundOf(size_t bucket) { return static_cast<int64_t>(8 + bucket % 8) << (bucket / 8); }

 private:
  struct alignas(64) Method {
    // Atomic, relaxed: statistics. Written by threads that answer, read by Update().
    std::array<std::atomic<uint32_t>, kBuckets> buckets{};
    // Atomic, relaxed: written by Update().
    std::atomic<int64_t> limit_ns{INT64_MAX};
    // Update()'s own: the counts when the window began. They wrap around.
    std::array<uint32_t, kBuckets> before{};
  };

  const size_t count_;
  const Nanos limit_;
  const std::unique_ptr<Method[]> methods_;  // null with a limit
};

}  // namespace curtail::observe
