// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/spin_budget.h"

#include <sched.h>

#include <algorithm>

namespace curtail {

int UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

bool SpinBudget::TryAcquire() {
  int used = used_.load(std::memory_order_relaxed);
  while (used < slots_) {
    if (used_.compare_exchange_weak(used, used + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

}  // namespace curtail
