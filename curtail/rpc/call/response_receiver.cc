// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/call/response_receiver.h"

#include <algorithm>

namespace curtail::internal {
namespace {

// Of a thread that is handling events.
thread_local TaskList* batch = nullptr;
thread_local const ResponseReceiver* handling = nullptr;

}  // namespace

TaskList* ResponseReceiver::Batch() const { return handling == this ? batch : nullptr; }

void ResponseReceiver::RunLater(Task& task) {
  {
    MutexLock lock(later_mu_);
    later_.Push(&task);
  }
  poller_->Wake();
}

void ResponseReceiver::Arm(ResponseTimer& timer, TimePoint when) {
  bool wake = false;
  {
    MutexLock lock(mu_);
    timers_.Insert(timer, when);
    wake = when < wakes_at_;
    if (wake) wakes_at_ = when;
  }
  if (wake) poller_->Wake();
}

void ResponseReceiver::Disarm(ResponseTimer& timer) {
  MutexLock lock(mu_);
  timers_.Remove(timer);
}

void ResponseReceiver::Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) {
  {
    MutexLock lock(mu_);
    const TimePoint next = timers_.empty() ? TimePoint::max() : timers_.first().when();
    if (wakes_at_ > next || (wakes_at_ != TimePoint::max() && wakes_at_ <= Now())) wakes_at_ = next;
    deadline = std::min(deadline, Deadline::At(wakes_at_));
  }
  poller_->Wait(deadline, spin, events);
}

void ResponseReceiver::Handle(const std::vector<Poller::Ready>& events, TaskList* ready) {
  batch = ready;
  handling = this;
  for (const Poller::Ready& event : events) event.Handle(nullptr);
  ExpireTimers();
  batch = nullptr;
  handling = nullptr;
  MutexLock lock(later_mu_);
  ready->Append(later_);
}

void ResponseReceiver::ExpireTimers() {
  MutexLock lock(mu_);
  if (timers_.empty()) return;
  const TimePoint now = Now();
  while (!timers_.empty() && timers_.first().when() <= now) {
    auto& timer = static_cast<ResponseTimer&>(timers_.first());
    timers_.Remove(timer);
    // It cannot go away meanwhile: before that it calls Disarm(), which waits for the mutex.
    if (const Deadline next = timer.OnTimer(); !next.infinite()) timers_.Insert(timer, next.when());
  }
}

}  // namespace curtail::internal
