// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace/slow_calls.h"

namespace curtail::observe {
namespace {

constexpr uint64_t kOneIn = 1000;  // calls beyond the p99.9

}  // namespace

SlowCalls::SlowCalls(size_t methods, Nanos limit)
    : count_(methods),
      limit_(limit),
      methods_(limit > Nanos::zero() ? nullptr : std::make_unique<Method[]>(methods)) {}

void SlowCalls::Update() {
  if (methods_ == nullptr) return;
  std::array<uint32_t, kBuckets> now;
  for (size_t m = 0; m < count_; ++m) {
    Method& method = methods_[m];
    uint64_t calls = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      now[i] = method.buckets[i].load(std::memory_order_relaxed);
      calls += now[i] - method.before[i];
    }
    if (calls < kWindow) continue;
    uint64_t beyond = 0;
    size_t bucket = kBuckets;
    while (bucket > 0 && beyond <= calls / kOneIn) {
      --bucket;
      beyond += now[bucket] - method.before[bucket];
    }
    // The p99.9 lies in this bucket: calls of the next ones are slower.
    method.limit_ns.store(BoundOf(bucket + 1), std::memory_order_relaxed);
    method.before = now;
  }
}

}  // namespace curtail::observe
