// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/parts/timer_clock.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace curtail::internal {

TimerClock::TimerClock() : fd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {}

absl::Status TimerClock::Register(const std::shared_ptr<TimerClock>& self, Poller& poller) {
  if (!fd_) return absl::ResourceExhaustedError("no file descriptor for a timer; see ulimit -n");
  return poller.Add(fd_.get(), self);
}

void TimerClock::Arm(Clocked& clocked, TimePoint when) {
  MutexLock lock(mu_);
  timers_.Remove(clocked);
  timers_.Insert(clocked, when);
  Set();
}

void TimerClock::Disarm(Clocked& clocked) {
  MutexLock lock(mu_);
  timers_.Remove(clocked);
}

// A timer that was removed leaves the kernel's as it is: one wake-up too many is cheaper than a call for each removal.
void TimerClock::Set() {
  if (timers_.empty() || timers_.first().when() >= set_for_) return;
  set_for_ = timers_.first().when();
  const int64_t ns = std::max<int64_t>(Nanos(set_for_.time_since_epoch()).count(), 1);
  const itimerspec time = {
      .it_interval = {},
      .it_value = {.tv_sec = static_cast<time_t>(ns / 1'000'000'000), .tv_nsec = ns % 1'000'000'000}};
  timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &time, nullptr);
}

void TimerClock::OnEvents(uint32_t events, TaskList* ready) {
  uint64_t times;
  if (!(events & EPOLLIN) || read(fd_.get(), &times, sizeof times) < 0) return;
  std::vector<std::shared_ptr<Clocked>> due;
  {
    MutexLock lock(mu_);
    set_for_ = TimePoint::max();
    const TimePoint now = Now();
    while (!timers_.empty() && timers_.first().when() <= now) {
      auto& clocked = static_cast<Clocked&>(timers_.first());
      timers_.Remove(clocked);
      if (auto alive = clocked.KeepAlive()) due.push_back(std::move(alive));
    }
    Set();
  }
  for (const auto& clocked : due) clocked->OnClock(ready);
}

}  // namespace curtail::internal
