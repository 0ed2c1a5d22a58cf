// SPDX-License-Identifier: Apache-2.0
//
// poller.h - waits for socket events: blocks for them, or polls.
//
// One thread at a time waits on a Poller (its owner sees to that); any thread adds, removes and wakes.
// Handlers are held by shared_ptr, so an event that was on its way when its handler was removed finds it
// alive.
#pragma once

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
  // `events` are EPOLL* bits. Requests that become ready by it are pushed to `ready`. Must not block.
  virtual void OnEvents(uint32_t events, TaskList* ready) = 0;
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

  // Watches `fd` for input, output and hang-up, edge-triggered. Any thread.
  absl::Status Add(int fd, std::shared_ptr<PollHandler> handler);
  // Forgets `fd`; call it before close(). Any thread.
  void Remove(int fd);
  // Reports anew what `fd` has ready now, as if it had just come. Any thread.
  void Rearm(int fd);
  // Ends the wait in progress, or the next one. Any thread; never blocks.
  void Wake();

  // Waits until there are events, somebody wakes it, or `deadline`; fills `ready`. With `spin`, polls while a
  // slot of the budget is free, and otherwise spins briefly before it blocks. One thread at a time.
  void Wait(Deadline deadline, SpinBudget* spin, std::vector<Ready>* ready);

 private:
  // Reads what is there, waiting at most until `deadline`. Returns whether anything (a wake-up included)
  // came.
  bool Collect(Deadline deadline, std::vector<Ready>* ready);
  bool SpinUntil(Deadline deadline, std::vector<Ready>* ready);

  // Immutable after construction.
  absl::Status status_;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;

  Mutex mu_;
  // By file descriptor.
  std::vector<std::shared_ptr<PollHandler>> handlers_ CURTAIL_GUARDED_BY(mu_);
};

}  // namespace curtail
