// SPDX-License-Identifier: Apache-2.0
//
// poller.h - waits for socket events: blocks for them, or polls.
//
// One thread at a time waits on a Poller (its owner ensures that); any thread adds, removes and
// wakes. A Poller holds handlers by shared_ptr. An event in flight at the removal of its handler
// therefore finds it alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/internal/spin_budget.h"
#include "curtail/exec/task.h"

namespace curtail {

// A PollHandler owns a file descriptor and hears its events. Edge-triggered: it must use an event
// up.
class PollHandler {
 public:
  virtual ~PollHandler() = default;
  // `events` are EPOLL* bits; none asks the handler to send its posted output. Pushes requests that
  // become ready to `ready`. Must not block.
  virtual void OnEvents(uint32_t events, TaskList* ready) = 0;
  // An exception has left OnEvents(), so nothing here can be relied on: closes the descriptor.
  virtual void OnException() {}

  // For an Outbox: the number of the list that last held this; numbers are unique in the process.
  // Relaxed: a thread looks for numbers that only it writes.
  std::atomic<uint64_t> held_in{0};
  // For owners that hold output for a bounded time: this is in their list. Exchanged (acq_rel)
  // behind a post, and ahead of the call of OnEvents() that sends it: either sees the other.
  std::atomic<bool> listed{false};
};

class Poller {
 public:
  struct Ready {
    // Tells the handler, within a boundary (base/boundary.h).
    void Handle(TaskList* ready) const;

    std::shared_ptr<PollHandler> handler;
    uint32_t events;
  };

  // Fails only when the process is out of descriptors; status() then says so.
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  const absl::Status& status() const { return status_; }
  // Readable while there are events: for nesting one poller in another.
  int fd() const { return epoll_fd_; }
  // A small number, unique among all pollers that were asked for theirs; free again once the poller
  // is gone.
  uint32_t id() {
    const uint32_t known = id_.load(std::memory_order_relaxed);
    return known != kNoId ? known : TakeId();
  }

  // Watches `fd` for input, output and hang-up, edge-triggered. Any thread.
  absl::Status Add(int fd, std::shared_ptr<PollHandler> handler);
  // Forgets `fd`; call it before close(). Any thread.
  void Remove(int fd);
  // Reports again the present events of `fd`, as if they had just come. Any thread.
  void Rearm(int fd);
  // Reports no event of `fd` until Rearm(). Any thread.
  void Disarm(int fd);
  // Ends the wait in progress, or the next one. Any thread; never blocks.
  void Wake();

  // Waits until there are events, a thread calls Wake(), or `deadline`; fills `ready`. With `spin`,
  // polls while a slot of the budget is free, and otherwise spins briefly before it blocks. Closing
  // the budget ends both. Returns true if `deadline` had passed before the wait or, polling, before
  // an event came; it has then looked for events, too. One thread at a time.
  bool Wait(Deadline deadline, SpinBudget* spin, std::vector<Ready>* ready);
  // True if the last Wait() may have left events behind. For the thread that waited.
  bool more() const { return more_; }

 private:
  // Reads the events that are there, waiting at most until `deadline`. Returns true if any (a
  // wake-up included) came.
  bool Collect(Deadline deadline, std::vector<Ready>* ready, bool* late);
  uint32_t TakeId();
  bool SpinUntil(Deadline deadline, const SpinBudget& spin, std::vector<Ready>* ready, bool* late);

  static constexpr uint32_t kNoId = ~uint32_t{0};

  // Immutable after construction.
  absl::Status status_;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;

  // Owned by the thread that waits.
  bool more_ = false;
  bool precise_ = true;  // false: the kernel counts waits in milliseconds

  // Atomic: set once, on first use.
  std::atomic<uint32_t> id_{kNoId};

  Mutex mu_;
  // By file descriptor.
  std::vector<std::shared_ptr<PollHandler>> handlers_ CURTAIL_GUARDED_BY(mu_);
};

namespace internal {

// Of EventTime(), for one thread.
struct EventClock {
  int scopes = 0;
  TimePoint time;  // zero: not read since the last wait
};
inline constinit thread_local EventClock event_clock;

}  // namespace internal

// While a thread has one of these it handles an event that its last Poller::Wait() gave it.
class EventScope {
 public:
  EventScope() { ++internal::event_clock.scopes; }
  ~EventScope() { --internal::event_clock.scopes; }
  EventScope(const EventScope&) = delete;
  EventScope& operator=(const EventScope&) = delete;
};

// Now, for callers that need not be exact: within an EventScope, all events of one Poller::Wait()
// share a reading of the clock.
inline TimePoint EventTime() {
  internal::EventClock& clock = internal::event_clock;
  if (clock.scopes == 0) return Now();
  if (clock.time == TimePoint()) clock.time = Now();
  return clock.time;
}

// Now, or when this thread began on the events of its last Poller::Wait(), if somebody asked then.
// For callers that look once a turn.
inline TimePoint TimeOfTurn() {
  const TimePoint time = internal::event_clock.time;
  return time == TimePoint() ? Now() : time;
}

}  // namespace curtail
