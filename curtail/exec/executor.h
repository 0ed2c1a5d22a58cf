// SPDX-License-Identifier: Apache-2.0
//
// executor.h - the thread pools of a server, composed from a config: who receives, who runs.
//
// In-line pools run the request on a thread that received it; dispatch pools hand it to a worker. Which
// sockets there are and what a request is, is the Receiver's and the Task's affair.
//
// Thread safety: Submit() from any thread; Stop() once, from a thread outside the pools.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/config.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/poller.h"
#include "curtail/exec/task.h"

namespace curtail {

// A Receiver is the network side of a server, as its pools see it.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // Waits for network events, polling if there is a `spin` budget; one thread at a time. Returns early,
  // perhaps with nothing, after Wake().
  virtual void Await(SpinBudget* spin, std::vector<Poller::Ready>* events) = 0;
  // Reads and answers what the events announce; requests that became whole are pushed to `ready`. Several
  // threads at once, each with events of its own.
  virtual void Handle(const std::vector<Poller::Ready>& events, TaskList* ready) = 0;
  // Sends what thread `thread_index` held back for tasks that ran with `more_ready`.
  virtual void Flush(uint32_t thread_index) = 0;
  // Ends the Await() in progress, or the next one.
  virtual void Wake() = 0;
};

// An Executor runs the tasks that a Receiver produces, on the pools of a Config. Only the synchronous models
// so far.
class Executor {
 public:
  // Starts all threads. `receiver` outlives the executor. REQUIRES: config.model.waiting == Waiting::kSync.
  Executor(const Config& config, Receiver* receiver);
  // Stops, if Stop() was not called.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // RESOURCE_EXHAUSTED when not all threads could be started: none runs then.
  const absl::Status& status() const { return status_; }

  // Queues tasks that became ready outside of Handle(). Never blocks. After Stop() they do not run.
  void Submit(TaskList& tasks);
  // Ends every thread once it has finished the task in hand; tasks that did not run go to `left_over`. Waits
  // for running tasks until `deadline`; false when some were still running then: call again, or let the
  // destructor wait.
  bool Stop(Deadline deadline, TaskList* left_over);

  // Threads that may run tasks: the indices in WaitHint are below this.
  uint32_t thread_count() const { return static_cast<uint32_t>(threads_.size()); }

 private:
  struct Thread {
    uint32_t index;
    Parker parker;
    std::thread thread;
  };

  absl::Status StartThreads();
  void ThreadMain(Thread& self, bool receives, bool runs);
  void InlineLoop(Thread& self);
  void NetworkLoop(Thread& self);
  void WorkerLoop(Thread& self);
  void RunTask(Task* task, Thread& self, SpinBudget* spin, bool more) CURTAIL_REQUIRES(mu_);
  // Waits until another thread takes `self` from `idle` and notifies it.
  void Park(std::vector<Thread*>& idle, Thread& self) CURTAIL_REQUIRES(mu_);

  // Immutable after construction.
  const Config config_;
  Receiver* const receiver_;
  absl::Status status_;
  std::vector<std::unique_ptr<Thread>> threads_;

  // Thread-safe by itself. spin_ is null in blocking models.
  SpinBudget spin_budget_;
  SpinBudget* const spin_;

  Mutex mu_;
  TaskList queue_ CURTAIL_GUARDED_BY(mu_);
  // Parked threads, woken last-in first-out: the one whose caches are warmest. Network threads of dispatch
  // models park in idle_network_, all others in idle_.
  std::vector<Thread*> idle_ CURTAIL_GUARDED_BY(mu_);
  std::vector<Thread*> idle_network_ CURTAIL_GUARDED_BY(mu_);
  bool leading_ CURTAIL_GUARDED_BY(mu_) = false;  // a thread is in Await(), or on its way into or out of it
  bool stopping_ CURTAIL_GUARDED_BY(mu_) = false;
  int alive_ CURTAIL_GUARDED_BY(mu_) = 0;              // threads whose loop has not ended
  Parker* stopper_ CURTAIL_GUARDED_BY(mu_) = nullptr;  // who waits for alive_ to reach zero
};

}  // namespace curtail
