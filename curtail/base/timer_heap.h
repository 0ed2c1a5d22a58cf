// SPDX-License-Identifier: Apache-2.0
//
// timer_heap.h - deadlines in order, kept without allocating for each: an indexed binary heap.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "curtail/base/clock.h"

namespace curtail {

// An entry of a TimerHeap. It belongs to one heap at a time; the heap's guard guards it too.
class Timer {
 public:
  bool armed() const { return index_ != kNone; }
  TimePoint when() const { return when_; }

 private:
  friend class TimerHeap;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  TimePoint when_;
  size_t index_ = kNone;
};

// A TimerHeap orders timers by time. Insertion at the end, the common case, takes constant time;
// other operations take O(log n). Thread-compatible.
class TimerHeap {
 public:
  bool empty() const { return heap_.empty(); }
  // REQUIRES: not empty.
  Timer& first() const { return *heap_.front(); }

  // REQUIRES: not armed.
  void Insert(Timer& timer, TimePoint when) {
    timer.when_ = when;
    heap_.push_back(&timer);
    Place(heap_.size() - 1, &timer);
    Up(timer.index_);
  }

  // No effect on a timer that is not armed.
  void Remove(Timer& timer) {
    const size_t hole = timer.index_;
    if (hole == Timer::kNone) return;
    timer.index_ = Timer::kNone;
    Timer* last = heap_.back();
    heap_.pop_back();
    if (last == &timer) return;
    Place(hole, last);
    Up(hole);
    Down(last->index_);
  }

 private:
  void Place(size_t i, Timer* timer) {
    heap_[i] = timer;
    timer->index_ = i;
  }
  void Up(size_t i) {
    Timer* const moving = heap_[i];
    while (i > 0 && moving->when_ < heap_[(i - 1) / 2]->when_) {
      Place(i, heap_[(i - 1) / 2]);
      i = (i - 1) / 2;
    }
    Place(i, moving);
  }
  void Down(size_t i) {
    Timer* const moving = heap_[i];
    while (true) {
      size_t child = 2 * i + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && heap_[child + 1]->when_ < heap_[child]->when_) ++child;
      if (moving->when_ <= heap_[child]->when_) break;
      Place(i, heap_[child]);
      i = child;
    }
    Place(i, moving);
  }

  std::vector<Timer*> heap_;
};

}  // namespace curtail
