// SPDX-License-Identifier: Apache-2.0
//
// receiver.h - the network as the pools see it: the source of tasks, and the destination of output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/exec/poller.h"
#include "curtail/exec/task.h"

namespace curtail {

class SpinBudget;

// A Receiver is a source of tasks: the network side of a server, or the replies of the services it
// calls.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // The poller that Await() waits on.
  virtual Poller& poller() = 0;
  // Waits for events until `deadline`, polling if there is a `spin` budget. One thread at a time.
  // Returns early after Wake(), perhaps without events.
  virtual void Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) = 0;
  // Reads and answers the input that the events announce; pushes tasks that became ready to
  // `ready`. Several threads at once, each with events of its own.
  virtual void Handle(const std::vector<Poller::Ready>& events, TaskList* ready) = 0;
  // Ends the Await() in progress, or the next one.
  virtual void Wake() = 0;
};

// An Outbox holds back output that may share a write with the same thread's next output.
class Outbox {
 public:
  virtual ~Outbox() = default;
  // An executor calls it once, before its threads start: their indices are below `threads`.
  virtual void Prepare(size_t /*threads*/) {}
  // Thread `thread_index` has posted output to `handler`. Follow the last of several with
  // FlushIfDue().
  virtual void Hold(uint32_t thread_index, std::shared_ptr<PollHandler> handler) = 0;
  // The same, for a thread that may go on for long: the output leaves within some 200 us of `now`,
  // whatever the thread does. False: it cannot be held, and the caller sends it.
  virtual bool HoldBriefly(uint32_t /*thread_index*/, std::shared_ptr<PollHandler> /*handler*/,
                           TimePoint /*now*/) {
    return false;
  }
  // Sends the output that thread `thread_index` held back, if it did for too long.
  virtual void FlushIfDue(uint32_t thread_index) = 0;
  // Sends the output that thread `thread_index` held back.
  virtual void Flush(uint32_t thread_index) = 0;
  // The number of handlers whose output thread `thread_index`, which asks, holds back.
  virtual size_t Holds(uint32_t /*thread_index*/) const { return 0; }
};

}  // namespace curtail
