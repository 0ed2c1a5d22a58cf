// SPDX-License-Identifier: Apache-2.0
//
// spin_budget.h - keeps pollers from starving the threads they wait for.
//
// A poller that holds a CPU which the awaited work needs delays that work. A server therefore never
// polls on all the CPUs it may use (curtail/base/cpus.h): at most that number less one. A thread
// without a slot spins briefly and then blocks. Where there are no slots at all, it blocks at once:
// on one CPU, or with a quota below 2, its spin would take the time of the work that it awaits.
#pragma once

#include <atomic>

#include "curtail/base/clock.h"

namespace curtail {

// A SpinBudget counts pollers. While it is closed, no thread polls, and pollers go on to block.
// Thread-safe; never blocks.
class SpinBudget {
 public:
  // The time for which a thread without a slot spins before it blocks.
  static constexpr Nanos kBriefSpin = std::chrono::microseconds(20);

  explicit SpinBudget(int slots) : slots_(slots) {}
  int slots() const { return slots_; }
  int used() const { return used_.load(std::memory_order_relaxed); }

  // Takes a slot if one is free; Release() gives it back.
  bool TryAcquire();
  void Release() { used_.fetch_sub(1, std::memory_order_relaxed); }

  // Closes it, or opens it again for threads that wait from then on.
  void SetOpen(bool open) { open_.store(open, std::memory_order_relaxed); }
  bool open() const { return open_.load(std::memory_order_relaxed); }

 private:
  const int slots_;
  // Atomic, relaxed: a poller reads it once in each round.
  std::atomic<bool> open_{true};
  // Atomic. A count only: it orders nothing else, hence relaxed.
  std::atomic<int> used_{0};
};

}  // namespace curtail
