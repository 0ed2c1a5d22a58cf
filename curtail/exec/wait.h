// SPDX-License-Identifier: Apache-2.0
//
// wait.h - how the present thread waits, and the objects that belong to it.
//
// Requests do not carry this along. Code that waits asks the thread it runs on, so it works the
// same under every caller.
#pragma once

#include <atomic>
#include <cstdint>

#include "curtail/base/clock.h"
#include "curtail/exec/config.h"

namespace curtail {

class Executor;
class FiberLoop;
class Outbox;
class Receiver;
class SpinBudget;

// A WaitHint is a pool's message to the code that runs on its thread.
struct WaitHint {
  uint32_t thread_index = 0;         // dense index within the server's pools; picks the lane
  Waiting waiting = Waiting::kSync;  // how requests that this thread runs wait
  // Polling models: spin for events while this has a slot; null: sleep
  SpinBudget* spin = nullptr;
  Executor* executor = nullptr;  // the pool; null on threads that belong to none
  Outbox* outbox = nullptr;      // to be flushed before a wait; null outside of servers
  // Asynchronous models: what takes the replies of other services
  Receiver* response = nullptr;
  FiberLoop* loop = nullptr;           // fiber models: the loop whose fibers this thread runs
  std::atomic<bool>* waits = nullptr;  // true while the thread waits, for the sensors
  TimePoint now;                       // when the task was taken from its queue; zero if it was not
  // Other requests were ready when this one began: its output may share their write
  bool more_ready = false;
  // The config has stand-ins: tasks tell their kind how they ran (TaskKind::Ran)
  bool stand_ins = false;
  // The order of waiting requests gave this one up: answer without the handler.
  bool shed = false;
  // The task may set it as its last act, in place of an empty list to the executor: the order may
  // now give out tasks that it held back (rule O5 of order.h). The thread looks before it takes
  // another task, and takes the first of them itself. Null: submit the list.
  bool* look = nullptr;
  // This thread receives requests, too: while it waits it calls Executor::ReceiveMeanwhile()
  bool receives = false;
};

namespace internal {

inline constinit thread_local const WaitHint* current_wait = nullptr;
// The hint of a thread that belongs to no pool.
const WaitHint& WaitOutside();

}  // namespace internal

// The hint of the present thread. A thread outside of any pool sleeps when it waits.
inline const WaitHint& CurrentWait() {
  const WaitHint* const hint = internal::current_wait;
  return hint != nullptr ? *hint : internal::WaitOutside();
}

// Sends the output that the present thread held back: call it before the thread sleeps (rule R5 of
// executor.cc). Fibers need not, because their loop does.
void FlushBeforeWait();

// Sets the present thread's hint for a scope.
class ScopedWait {
 public:
  explicit ScopedWait(const WaitHint& hint) : before_(internal::current_wait) {
    internal::current_wait = &hint;
  }
  ~ScopedWait() { internal::current_wait = before_; }
  ScopedWait(const ScopedWait&) = delete;
  ScopedWait& operator=(const ScopedWait&) = delete;

 private:
  const WaitHint* const before_;
};

}  // namespace curtail
