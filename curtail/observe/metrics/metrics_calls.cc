// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/metrics/metrics_calls.h"

namespace curtail::observe {
namespace {

constexpr int kUnknown = 2;

}  // namespace

MetricsCalls::MetricsCalls(size_t methods) : size_(methods), methods_(std::make_unique<Method[]>(methods)) {}

void MetricsCalls::CountFailure(Method& method, int code) {
  if (code < 0 || code >= static_cast<int>(kCodes)) code = kUnknown;
  method.failures[static_cast<size_t>(code) - 1].fetch_add(1, std::memory_order_relaxed);
}

MetricsCalls::Counts MetricsCalls::Read(size_t method) const {
  const Method& from = methods_[method];
  Counts counts;
  // Failures first: those that end meanwhile are in the buckets only, and no count falls below zero.
  uint64_t failed = 0;
  for (size_t code = 1; code < kCodes; ++code) {
    counts.codes[code] = from.failures[code - 1].load(std::memory_order_relaxed);
    failed += counts.codes[code];
  }
  uint64_t calls = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    counts.buckets[bucket] = from.buckets[bucket].load(std::memory_order_relaxed);
    calls += counts.buckets[bucket];
  }
  counts.codes[0] = calls > failed ? calls - failed : 0;
  counts.sum = Nanos(from.sum_ns.load(std::memory_order_relaxed));
  return counts;
}

}  // namespace curtail::observe
