// SPDX-License-Identifier: Apache-2.0
//
// metrics_edges.h - counts of the calls to other services, by the target of their channel and by method.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/observe/metrics/metrics_calls.h"
#include "curtail/observe/trace/span.h"

namespace curtail::observe {

// Longer than those of spans: targets of one folder of sockets differ at their ends.
using EdgeAddress = SpanText<127>;

// A MetricsEdges counts the calls of kMost - 1 edges, the first that there are; the calls of all others count as those of
// one more. Thread-safe; Count() takes no memory, and a lock only for the first call of an edge.
//
// Memory ordering: a bucket is written once, after its edge, by a thread that has the lock (release), and read by each
// call (acquire); so an edge that is found is whole.
class MetricsEdges {
 public:
  static constexpr size_t kMost = 64;
  static constexpr size_t kOther = 0;  // of the edges

  // A call, in-process ones included, has ended. Longer names are cut off.
  void Count(std::string_view target, std::string_view path, Nanos duration, int code, uint32_t retries,
             uint32_t hedges) {
    target = target.substr(0, EdgeAddress::kMost);
    path = path.substr(0, SpanPath::kMost);
    const size_t edge = Find(target, path);
    calls_.Count(edge, duration, code);
    if ((retries | hedges) != 0) [[unlikely]]
      CountAttempts(edge, retries, hedges);
  }

  struct Edge {
    std::string_view target, path;  // as long as this lives; both empty: all other edges
    MetricsCalls::Counts counts;
    uint64_t retries = 0, hedges = 0;
  };
  // Those so far; that of all others comes first.
  size_t size() const { return size_.load(std::memory_order_acquire); }
  // REQUIRES: edge < size().
  Edge Read(size_t edge) const;

 private:
  static constexpr size_t kBuckets = 4 * kMost;  // mostly empty, so that a search is short

  struct Names {
    EdgeAddress target;
    SpanPath path;
  };

  // The first and the last bytes are where targets and methods differ.
  static size_t Hash(std::string_view target, std::string_view path);
  size_t Find(std::string_view target, std::string_view path) {
    for (size_t bucket = Hash(target, path);; bucket = (bucket + 1) % kBuckets) {
      const size_t edge = buckets_[bucket].load(std::memory_order_acquire);
      if (edge == kOther) return Add(bucket, target, path);
      if (names_[edge].target.view() == target && names_[edge].path.view() == path) return edge;
    }
  }
  // The edge, perhaps a new one; the search came to the empty `bucket`.
  size_t Add(size_t bucket, std::string_view target, std::string_view path);
  void CountAttempts(size_t edge, uint32_t retries, uint32_t hedges);

  // Atomic. By the hash of an edge, its index; kOther: empty.
  std::array<std::atomic<uint8_t>, kBuckets> buckets_{};
  static_assert(kMost <= UINT8_MAX);
  // Each written once, before its bucket.
  std::array<Names, kMost> names_{};
  MetricsCalls calls_{kMost};
  // Atomic, relaxed: counts that order nothing.
  std::array<std::atomic<uint64_t>, kMost> retries_{}, hedges_{};
  Mutex mu_;
  std::atomic<size_t> size_{1};  // written with mu_ held (release), read by scrapes (acquire)
};

}  // namespace curtail::observe
