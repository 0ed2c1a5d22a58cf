// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/spin_budget.h"

namespace curtail {

bool SpinBudget::TryAcquire() {
  int used = used_.load(std::memory_order_relaxed);
  while (used < slots_) {
    if (used_.compare_exchange_weak(used, used + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

}  // namespace curtail
