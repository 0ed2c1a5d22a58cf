// SPDX-License-Identifier: Apache-2.0
//
// timer_clock.h - tells connections of a server that a time has come, on the threads that handle events.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/base/timer_heap.h"
#include "curtail/exec/poller.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::internal {

// A Clocked hears of one time. It calls TimerClock::Disarm() before it ends.
class Clocked : public Timer {
 public:
  // The time has come. Requests that become ready go to `ready`. Must not block.
  virtual void OnClock(TaskList* ready) = 0;
  // Keeps this alive while OnClock() runs; null: it is about to end. Called with the clock's mutex held.
  virtual std::shared_ptr<Clocked> KeepAlive() = 0;

 protected:
  ~Clocked() = default;
};

// A TimerClock is a timer of the kernel that a poller watches: no thread sleeps for it.
// Thread-safe.
class TimerClock final : public PollHandler {
 public:
  TimerClock();
  TimerClock(const TimerClock&) = delete;
  TimerClock& operator=(const TimerClock&) = delete;

  // Registers with `poller`, once. Errors: RESOURCE_EXHAUSTED for lack of a file descriptor.
  absl::Status Register(const std::shared_ptr<TimerClock>& self, Poller& poller);
  // `clocked` hears of `when`, and no longer of the time it was armed for before.
  void Arm(Clocked& clocked, TimePoint when);
  // After this it hears of none.
  void Disarm(Clocked& clocked);

  void OnEvents(uint32_t events, TaskList* ready) override;

 private:
  // Has the kernel wake the poller at the first time.
  void Set() CURTAIL_REQUIRES(mu_);

  const UniqueFd fd_;

  Mutex mu_;
  TimerHeap timers_ CURTAIL_GUARDED_BY(mu_);
  TimePoint set_for_ CURTAIL_GUARDED_BY(mu_) = TimePoint::max();
};

}  // namespace curtail::internal
