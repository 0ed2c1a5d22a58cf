// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/timer_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "curtail/base/rng.h"

namespace curtail {
namespace {

TEST(TimerHeap, HandsOutTimersInOrder) {
  constexpr uint64_t kSeed = 20250;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  TimerHeap heap;
  std::vector<std::unique_ptr<Timer>> timers;
  std::multiset<TimePoint> model;
  for (int step = 0; step < 20'000; ++step) {
    if (rng.Next() % 3 != 0 || model.empty()) {
      const TimePoint when{Nanos(static_cast<int64_t>(rng.Next() % 1000))};
      timers.push_back(std::make_unique<Timer>());
      heap.Insert(*timers.back(), when);
      model.insert(when);
    } else if (rng.Next() % 2 == 0) {
      ASSERT_EQ(heap.first().when(), *model.begin());
      heap.Remove(heap.first());
      model.erase(model.begin());
    } else {
      Timer& any = *timers[rng.Next() % timers.size()];
      if (any.armed()) model.erase(model.find(any.when()));
      heap.Remove(any);
      ASSERT_FALSE(any.armed());
    }
    ASSERT_EQ(heap.empty(), model.empty());
  }
  for (; !heap.empty(); model.erase(model.begin())) {
    ASSERT_EQ(heap.first().when(), *model.begin());
    heap.Remove(heap.first());
  }
}

}  // namespace
}  // namespace curtail
