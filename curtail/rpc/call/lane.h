// SPDX-License-Identifier: Apache-2.0
//
// lane.h - a set of client connections that waiting threads drive in turns.
//
// See docs/design/lanes.md for the picture; the protocol is at the top of lane.cc.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/poller.h"

namespace curtail {

class Lane;

// A Waiter is a thread, or a fiber, that waits for something to be done. Lives on its stack.
class Waiter {
 public:
  static constexpr uint32_t kDone = Parker::Signal(0);         // what it waits for has happened
  static constexpr uint32_t kInterrupted = Parker::Signal(1);  // look around: cancelled
  static constexpr uint32_t kPromoted = Parker::Signal(2);     // it is the leader now
  static constexpr uint32_t kLeading = Parker::Signal(3);  // it is in, or about to enter, the lane's poller

  // `lane`: where the thread will wait; null for fibers, whose loop does all the waiting.
  explicit Waiter(Lane* lane) : lane_(lane), thread_(pthread_self()) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Wakes the waiter with `signal`. After kDone the waiter may be gone. Any thread; never blocks.
  void Notify(uint32_t signal);
  bool Has(uint32_t signals) const { return (parker_.Ticket() & signals) != 0; }
  void Clear(uint32_t signals) { parker_.Clear(signals); }
  // On a fiber: returns when it has kDone or kInterrupted, or at `deadline`.
  void WaitOnFiber(Deadline deadline);

 private:
  friend class Lane;

  Lane* const lane_;
  const pthread_t thread_;
  Parker parker_;
  // Guarded by the lane's mutex: neighbours among the followers.
  Waiter* prev_ = nullptr;
  Waiter* next_ = nullptr;
};

class Lane {
 public:
  const std::shared_ptr<Poller>& poller() const { return poller_; }

  // Returns when `waiter` has kDone or kInterrupted, or at `deadline`. Meanwhile this thread may move bytes
  // for others. Polls while `spin` (may be null) has a slot for it.
  void Wait(Waiter& waiter, Deadline deadline, SpinBudget* spin);

  // Event-driven use, by one thread that never calls Wait(): handles events, waiting for the first until
  // `deadline`.
  void PollOnce(Deadline deadline);

 private:
  void Lead(Waiter& waiter, Deadline deadline, SpinBudget* spin);
  bool Join(Waiter& waiter);
  void Leave(Waiter& waiter);

  // Thread-safe by itself; Wait() on it is the leader's alone.
  const std::shared_ptr<Poller> poller_ = std::make_shared<Poller>();
  // Owned by the leader.
  std::vector<Poller::Ready> events_;

  Mutex mu_;
  Waiter* leader_ CURTAIL_GUARDED_BY(mu_) = nullptr;
  Waiter* followers_ CURTAIL_GUARDED_BY(mu_) = nullptr;  // newest first
};

}  // namespace curtail
