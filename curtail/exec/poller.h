// SPDX-License-Identifier: Apache-2.0
//
// poller.h - waits for socket events: blocks for them, or polls.
//
// One thread at a time waits on a Poller (its owner sees to that); any thread adds, removes and wakes.
// Handlers are held by shared_ptr, so an event that was on its way when its handler was removed finds it
// alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/spin_budget.h"
#include "curtail/exec/task.h"

namespace curtail {

// A PollHandler owns a file descriptor and hears of its events. Edge-triggered: it must use an event up.
class PollHandler {
 public:
  virtual ~PollHandler() = default;
  // `events` are EPOLL* bits; none asks to send what was posted. Requests that become ready by it are pushed
  // to `ready`. Must not block.
  virtual void OnEvents(uint32_t events, TaskList* ready) = 0;

  // For an Outbox: the number of its list that this was put into last; numbers are unique in the process. Relaxed: a
  // thread looks for numbers that only it writes.
  std::atomic<uint64_t> held_in{0};
};

class Poller {
 public:
  struct Ready {
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
  // A small number, among all pollers that were asked for theirs; free again once the poller is gone.
  uint32_t id();

  // Watches `fd` for input, output and hang-up, edge-triggered. Any thread.
  absl::Status Add(int fd, std::shared_ptr<PollHandler> handler);
  // Forgets `fd`; call it before close(). Any thread.
  void Remove(int fd);
  // Reports anew what `fd` has ready now, as if it had just come. Any thread.
  void Rearm(int fd);
  // Reports nothing more of `fd` until Rearm(). Any thread.
  void Disarm(int fd);
  // Ends the wait in progress, or the next one. Any thread; never blocks.
  void Wake();

  // Waits until there are events, somebody wakes it, or `deadline`; fills `ready`. With `spin`, polls while a
  // slot of the budget is free, and otherwise spins briefly before it blocks; closing the budget ends both.
  // Returns whether `deadline` had passed before it waited, or, polling, before an event came: it has looked
  // for events then, too. One thread at a time.
  bool Wait(Deadline deadline, SpinBudget* spin, std::vector<Ready>* ready);
  // Whether the last Wait() may have left events behind. For the thread that waited.
  bool more() const { return more_; }

 private:
  // Reads what is there, waiting at most until `deadline`. Returns whether anything (a wake-up included)
  // came.
  bool Collect(Deadline deadline, std::vector<Ready>* ready, bool* late);
  bool SpinUntil(Deadline deadline, const SpinBudget& spin, std::vector<Ready>* ready, bool* late);

  static constexpr uint32_t kNoId = ~uint32_t{0};

  // Immutable after construction.
  absl::Status status_;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;

  // Owned by the thread that waits.
  bool more_ = false;

  // Atomic: set once, on first use.
  std::atomic<uint32_t> id_{kNoId};

  Mutex mu_;
  // By file descriptor.
  std::vector<std::shared_ptr<PollHandler>> handlers_ CURTAIL_GUARDED_BY(mu_);
};

}  // namespace curtail
