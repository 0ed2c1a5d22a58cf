// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/response_receiver.h"

#include <algorithm>

#include "curtail/rpc/client/fanout.h"

namespace curtail::internal {
namespace {

thread_local TaskList* batch = nullptr;

}  // namespace

TaskList* ResponseReceiver::Batch() { return batch; }

void ResponseReceiver::Arm(AsyncFanout& fanout, TimePoint when) {
  bool wake = false;
  {
    MutexLock lock(mu_);
    timers_.Insert(fanout, when);
    wake = when < wakes_at_;
    if (wake) wakes_at_ = when;
  }
  if (wake) poller_->Wake();
}

void ResponseReceiver::Disarm(AsyncFanout& fanout) {
  MutexLock lock(mu_);
  timers_.Remove(fanout);
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
  for (const Poller::Ready& event : events) event.handler->OnEvents(event.events, nullptr);
  ExpireTimers();
  batch = nullptr;
}

void ResponseReceiver::ExpireTimers() {
  MutexLock lock(mu_);
  if (timers_.empty()) return;
  const TimePoint now = Now();
  while (!timers_.empty() && timers_.first().when() <= now) {
    auto& fanout = static_cast<AsyncFanout&>(timers_.first());
    timers_.Remove(fanout);
    // It cannot go away meanwhile: before that it calls Disarm(), which waits for the mutex.
    if (const Deadline next = fanout.OnTimer(); !next.infinite()) timers_.Insert(fanout, next.when());
  }
}

}  // namespace curtail::internal
