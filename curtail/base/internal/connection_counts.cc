// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/internal/connection_counts.h"

#include <algorithm>
#include <utility>

namespace curtail::internal {

// Never destroyed: connections may outlive everything else.
ConnectionCounts& ConnectionCounts::OfProcess() {
  static auto* const counts = new ConnectionCounts;
  return *counts;
}

ConnectionCounts& ConnectionCounts::ToStores() {
  static auto* const counts = new ConnectionCounts;
  return *counts;
}

TargetConnections* ConnectionCounts::For(std::string_view target) {
  target = target.substr(0, kMostName);
  MutexLock lock(mu_);
  const auto known = std::find(names_.begin(), names_.end(), target);
  if (known != names_.end()) return &counts_[static_cast<size_t>(known - names_.begin())];
  if (names_.size() == kOther) {
    others_ = true;
    return &counts_[kOther];
  }
  names_.emplace_back(target);
  return &counts_[names_.size() - 1];
}

std::vector<ConnectionCounts::Row> ConnectionCounts::Read() const {
  std::vector<Row> rows;
  const auto add = [&](std::string name, const TargetConnections& of) {
    // In this order, so that none is closed that did not stand.
    const uint64_t closed = of.closed.load(std::memory_order_relaxed);
    const uint64_t stood = of.stood.load(std::memory_order_relaxed);
    rows.push_back({.target = std::move(name),
                    .open = stood - std::min(stood, closed),
                    .attempts = of.attempts.load(std::memory_order_relaxed),
                    .failures = of.failures.load(std::memory_order_relaxed),
                    .lost = of.lost.load(std::memory_order_relaxed),
                    .silent = of.silent.load(std::memory_order_relaxed)});
  };
  MutexLock lock(mu_);
  for (size_t i = 0; i < names_.size(); ++i) add(names_[i], counts_[i]);
  if (others_) add("other", counts_[kOther]);
  return rows;
}

}  // namespace curtail::internal
