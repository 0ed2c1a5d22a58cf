// SPDX-License-Identifier: Apache-2.0
//
// decision_waits.h - handlers that wait until an order is decided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>

#include "curtail/base/clock.h"
#include "curtail/exec/sync.h"
#include "curtail/exec/wait.h"

namespace curtail::shop {

// Thread-safe. Its waits are as the threading model waits.
class DecisionWaits {
 public:
  // A handler has one before it looks at the order, or queues it. So it misses no decision.
  class Wait {
   public:
    Wait(DecisionWaits& all, uint64_t order) : all_(all), order_(order) {
      const std::lock_guard lock(all_.mu_);
      // A wait holds a thread of a synchronous model, and the decision takes one, too.
      const size_t most = CurrentWait().waiting == Waiting::kSync ? kMostThreads : kMost;
      listed_ = all_.waits_.size() < most;
      if (listed_) at_ = all_.waits_.insert(all_.waits_.end(), this);
    }
    ~Wait() {
      const std::lock_guard lock(all_.mu_);
      if (listed_) all_.waits_.erase(at_);
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    // True once the order is decided. False at the deadline; at once, if too many wait.
    bool Until(Deadline deadline) {
      std::unique_lock lock(all_.mu_);
      while (listed_ && !decided_ && changed_.wait_until(lock, deadline)) {
      }
      return decided_;
    }

   private:
    friend class DecisionWaits;
    DecisionWaits& all_;
    const uint64_t order_;
    // Guarded by all_.mu_.
    bool listed_ = false, decided_ = false;
    std::list<Wait*>::iterator at_;
    FiberCondition changed_;
  };

  void Decided(uint64_t order) {
    const std::lock_guard lock(mu_);
    for (Wait* const wait : waits_) {
      if (wait->order_ != order) continue;
      wait->decided_ = true;
      wait->changed_.notify_one();
    }
  }

 private:
  static constexpr size_t kMostThreads = 2, kMost = 256;

  FiberMutex mu_;
  std::list<Wait*> waits_;  // guarded by mu_
};

}  // namespace curtail::shop
