// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/metrics_edges.h"

#include <cstring>

namespace curtail::observe {
namespace {

uint64_t Ends(std::string_view text) {
  uint64_t first = 0, last = 0;
  if (text.size() >= sizeof first) [[likely]] {
    std::memcpy(&first, text.data(), sizeof first);
    std::memcpy(&last, text.data() + text.size() - sizeof last, sizeof last);
  } else {
    for (const char c : text) first = first << 8 | static_cast<uint8_t>(c);
  }
  return first + last * 3;
}

}  // namespace

size_t MetricsEdges::Hash(std::string_view target, std::string_view path) {
  uint64_t mixed = (Ends(target) ^ target.size()) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ Ends(path) ^ path.size()) * 0xbf58476d1ce4e5b9;
  return (mixed >> 32) % kBuckets;
}

size_t MetricsEdges::Add(size_t bucket, std::string_view target, std::string_view path) {
  if (size() == kMost) return kOther;
  const MutexLock lock(mu_);
  // Another thread may have added it, or others, meanwhile.
  for (;; bucket = (bucket + 1) % kBuckets) {
    const size_t edge = buckets_[bucket].load(std::memory_order_acquire);
    if (edge == kOther) break;
    if (names_[edge].target.view() == target && names_[edge].path.view() == path) return edge;
  }
  const size_t edge = size_.load(std::memory_order_relaxed);
  if (edge == kMost) return kOther;
  names_[edge].target.Assign(target);
  names_[edge].path.Assign(path);
  size_.store(edge + 1, std::memory_order_release);
  buckets_[bucket].store(static_cast<uint8_t>(edge), std::memory_order_release);
  return edge;
}

void MetricsEdges::CountAttempts(size_t edge, uint32_t retries, uint32_t hedges) {
  retries_[edge].fetch_add(retries, std::memory_order_relaxed);
  hedges_[edge].fetch_add(hedges, std::memory_order_relaxed);
}

MetricsEdges::Edge MetricsEdges::Read(size_t edge) const {
  return {.target = names_[edge].target.view(),
          .path = names_[edge].path.view(),
          .counts = calls_.Read(edge),
          .retries = retries_[edge].load(std::memory_order_relaxed),
          .hedges = hedges_[edge].load(std::memory_order_relaxed)};
}

}  // namespace curtail::observe
