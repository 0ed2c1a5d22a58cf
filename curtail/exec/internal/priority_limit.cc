// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/priority_limit.h"

#include <algorithm>

namespace curtail {

bool PriorityLimit::Admit(Priority priority, TimePoint now, size_t waiting) {
  if (came_ == 0) began_ = now;
  if (now - began_ >= options_.window || came_ == kRequests) {  // P2
    EndWindow(now - began_, waiting);
    began_ = now;
  }
  const uint32_t level = LevelOf(priority);
  ++came_;
  ++of_business_[priority.business];
  ++of_level_[level];
  first_ = std::min(first_, level);
  const bool admitted = level <= limit_.load(std::memory_order_relaxed);  // P1
  admitted_ += admitted;
  return admitted;
}

void PriorityLimit::EndWindow(Nanos length, size_t waiting) {
  const double ns = std::max(1.0, static_cast<double>(length.count()));
  capacity_per_ns_ = std::max(run_ / ns, 0.9 * capacity_per_ns_);  // P4
  if (taken_ > 0) {
    // A window has no more requests than that, however long it was.
    const double capacity = std::min(capacity_per_ns_ * ns, kRequests + 1.0);
    uint32_t limit = 0;
    if (overdue_ || wait_ > taken_ * options_.target) {  // P5
      const double in_target = capacity_per_ns_ * static_cast<double>(options_.target.count());
      const double backlog = std::max(0.0, static_cast<double>(waiting) - in_target);
      double next = std::max(0.25 * capacity, 0.95 * capacity - backlog);
      if (admitted_ >= run_) next = std::min(next, 0.95 * admitted_);
      limit = std::max(first_, LevelFor(static_cast<uint32_t>(next), /*over=*/false));
    } else {  // P6
      const uint32_t more = admitted_ + std::max(1u, came_ / 100);
      limit = LevelFor(std::max(more, static_cast<uint32_t>(0.95 * capacity)), /*over=*/true);
    }
    limit_.store(limit, std::memory_order_relaxed);
  }
  came_ = admitted_ = taken_ = run_ = 0;
  wait_ = Nanos::zero();
  overdue_ = false;
  first_ = kLast;
  of_business_.fill(0);
  of_level_.fill(0);
}

uint32_t PriorityLimit::LevelFor(uint32_t count, bool over) const {
  const auto passes = [&](uint32_t sum) { return over ? sum >= count : sum > count; };
  uint32_t sum = 0;
  for (uint32_t business = 0; business < kLevels; ++business) {
    if (!passes(sum + of_business_[business])) {
      sum += of_business_[business];
      continue;
    }
    uint32_t level = business * kLevels;
    while (!passes(sum += of_level_[level])) ++level;
    return over ? level : std::max(level, 1u) - 1;
  }
  return kLast;
}

}  // namespace curtail
