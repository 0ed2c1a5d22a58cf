// SPDX-License-Identifier: Apache-2.0
//
// response_receiver.h - where the replies to asynchronous requests arrive: the source of tasks of a server's
// response pool.
#pragma once

#include <memory>
#include <vector>

#include "curtail/base/mutex.h"
#include "curtail/base/timer_heap.h"
#include "curtail/exec/receiver.h"

namespace curtail::internal {

// Something asynchronous that has a deadline, or looks around now and then.
class ResponseTimer : public Timer {
 public:
  // Its time has come; returns when to be called again. Under the receiver's mutex.
  virtual Deadline OnTimer() = 0;

 protected:
  ~ResponseTimer() = default;
};

// A ResponseReceiver holds the poller on which the connections of asynchronous requests are registered, and
// their deadlines. Thread-safe.
class ResponseReceiver final : public Receiver {
 public:
  const std::shared_ptr<Poller>& shared_poller() const { return poller_; }

  // Has `timer` hear of `when`. Any thread. REQUIRES: not armed.
  void Arm(ResponseTimer& timer, TimePoint when);
  // After this it does not hear of it any more.
  void Disarm(ResponseTimer& timer);
  // Where a thread that is handling events of this receiver puts what became ready; null on other threads.
  TaskList* Batch() const;
  // Has the pool run `task` after it has looked for events. Any thread.
  void RunLater(Task& task);

  // Receiver.
  Poller& poller() override { return *poller_; }
  void Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) override;
  void Handle(const std::vector<Poller::Ready>& events, TaskList* ready) override;
  void Wake() override { poller_->Wake(); }

 private:
  void ExpireTimers();

  const std::shared_ptr<Poller> poller_ = std::make_shared<Poller>();

  Mutex mu_;
  TimerHeap timers_ CURTAIL_GUARDED_BY(mu_);
  // When the leader will look at the timers, at the latest. It does not go back when a timer is removed, so
  // that in a steady stream of requests most timers are armed without waking anybody.
  TimePoint wakes_at_ CURTAIL_GUARDED_BY(mu_) = TimePoint::max();

  // Held for a moment, with no other mutex taken meanwhile.
  Mutex later_mu_;
  TaskList later_ CURTAIL_GUARDED_BY(later_mu_);
};

}  // namespace curtail::internal
