// SPDX-License-Identifier: Apache-2.0
//
// order.h - which of the requests that wait for a thread runs next, and which the server refuses.
//
// An Executor asks its Order (ExecutorOptions::order) under its one mutex. A new order is one file
// with one class: a priority, a queue that sheds, a limit on running requests. The default is
// fifo_order.h, and a server's is fair_order.h.
//
// Thread safety: none of its own. The executor's mutex guards every call.
//
// An order obeys these rules:
//
//  O1  It never blocks, and takes no lock that another thread holds across a call that blocks: all
//      threads of the pools wait for it. Its steps take constant or logarithmic time.
//  O2  Each task that Append() brought comes out exactly once: from Pop(), or from TakeAll().
//  O3  While ready() is above zero, Pop() returns a task. Only Append() raises ready(); the
//      executor wakes threads for the difference. Pop() lowers it by one or more.
//  O4  An order that gives a task up returns it from Pop() like any other, but marked `shed`. The
//      task's Run() then answers at once, without its handler (WaitHint::shed).
//  O5  An order that holds tasks back, as for lack of a permit, leaves them out of ready(), and
//      counts them in at a later Append(). The thread that returns a permit submits an empty list,
//      or leaves that to the executor (WaitHint::look).
#pragma once

#include <cstddef>
#include <cstdint>

#include "curtail/base/clock.h"
#include "curtail/exec/task.h"

namespace curtail {

// An Order holds the requests of one executor that wait for a thread.
class Order {
 public:
  struct Next {
    Task* task = nullptr;
    bool shed = false;  // to be answered without its handler
  };

  virtual ~Order() = default;
  // Takes all of `tasks`, perhaps none. Each tells when it came (Task::queued_at).
  virtual void Append(TaskList& tasks) = 0;
  // Gives out the task whose turn it is at `now`. REQUIRES: ready() is above zero.
  virtual Next Pop(TimePoint now) = 0;
  // The threads that it wants beside the `threads` of a config whose tasks hold one each. They
  // sleep until so many tasks are ready. SetThreads() counts them in, as far as the pool has them.
  virtual uint32_t Beside(uint32_t /*threads*/) const { return 0; }
  // So many threads run the tasks from now on, each one task at a time; 0: a task that waits for
  // others holds no thread. An empty Append() follows.
  virtual void SetThreads(uint32_t /*threads*/) {}
  // Moves every task, also those held back, to the end of `left_over`: the pools have stopped.
  virtual void TakeAll(TaskList* left_over) = 0;
  // Tasks that wait, also those held back. For statistics.
  virtual size_t size() const = 0;

  // How many tasks Pop() would give out now.
  size_t ready() const { return ready_; }

 protected:
  // Kept by the subclass. A field, because every step of every thread reads it.
  size_t ready_ = 0;
};

}  // namespace curtail
