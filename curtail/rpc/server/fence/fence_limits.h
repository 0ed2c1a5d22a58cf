// SPDX-License-Identifier: Apache-2.0
//
// fence_limits.h - ends the bins of a fence's limiters in time: every 50 ms, or every second while no request comes.
#pragma once

#include <memory>

#include "curtail/fence/class_limits.h"
#include "curtail/rpc/server/parts/timer_clock.h"

namespace curtail {

class Executor;

namespace internal {

// A FenceLimits runs on the threads that handle the server's events. Thread-safe.
class FenceLimits final : public Clocked, public std::enable_shared_from_this<FenceLimits> {
 public:
  // All of them outlive it. REQUIRES: the limits of the fence follow.
  FenceLimits(Fence* fence, TimerClock* clock, Executor* executor);
  ~FenceLimits() { clock_.Disarm(*this); }

  // Once, when the clock runs.
  void Start();

  // Clocked.
  void OnClock(TaskList* ready) override;
  std::shared_ptr<Clocked> KeepAlive() override { return weak_from_this().lock(); }

 private:
  TimerClock& clock_;
  Executor& executor_;
  // Owned by the thread in OnClock(): the next one is armed at its end.
  ClassLimits limits_;
};

}  // namespace internal
}  // namespace curtail
