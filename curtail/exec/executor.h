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

// An Executor runs the tasks that a Receiver produces, on the pools of a Config, which may be exchanged for
// another at any time. Only the synchronous models so far.
class Executor {
 public:
  // Starts all threads it will ever have: `max_threads`, or as many as `config` needs if that is more. Those
  // without a role in the config sleep. `receiver` outlives the executor. REQUIRES: config.model.waiting ==
  // Waiting::kSync.
  Executor(const Config& config, uint32_t max_threads, Receiver* receiver);
  // Stops, if Stop() was not called.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // RESOURCE_EXHAUSTED when not all threads could be started: none runs then.
  const absl::Status& status() const { return status_; }

  // Gives every thread its role in `config`. Requests that run finish as they began; none is lost, doubled or
  // held up. Never waits for one. Errors: INVALID_ARGUMENT for a model it has not, or one that needs more
  // threads than there are.
  absl::Status SwitchTo(const Config& config);
  Config config() const;

  // Queues tasks that became ready outside of Handle(). Never blocks. After Stop() they do not run.
  void Submit(TaskList& tasks);
  // Ends every thread once it has finished the task in hand; tasks that did not run go to `left_over`. Waits
  // for running tasks until `deadline`; false when some were still running then: call again, or let the
  // destructor wait.
  bool Stop(Deadline deadline, TaskList* left_over);

  // Threads that may run tasks: the indices in WaitHint are below this.
  uint32_t thread_count() const { return static_cast<uint32_t>(threads_.size()); }

 private:
  enum Role { kNone, kInline, kWorker, kNetwork, kRoles };
  struct Thread {
    explicit Thread(uint32_t i) : index(i) {}
    const uint32_t index;
    Parker parker;
    std::thread thread;
    // Owned by the thread itself.
    std::vector<Poller::Ready> events;
    bool held = false;  // it ran tasks since it last flushed
    // Guarded by mu_.
    Role role = kNone;
  };

  absl::Status Check(const Config& config) const;
  absl::Status StartThreads();
  void ThreadMain(Thread& self);
  // How many threads may have a role.
  int Allowed(Role role) const CURTAIL_REQUIRES(mu_);
  // Gives up a role that too many have, and takes one that too few have.
  void Settle(Thread& self) CURTAIL_REQUIRES(mu_);
  // One step of a role each; false when there was nothing to do.
  bool RunOne(Thread& self) CURTAIL_REQUIRES(mu_);
  bool FlushHeld(Thread& self) CURTAIL_REQUIRES(mu_);
  bool Receive(Thread& self) CURTAIL_REQUIRES(mu_);
  // Sleeps in `seat` until taken from it and notified.
  void Park(std::vector<Thread*>& seat, Thread& self) CURTAIL_REQUIRES(mu_);
  // Takes the thread that parked last from its seat, if there is one. The caller notifies it, best without
  // the mutex.
  Thread* TakeLast(std::vector<Thread*>& seat) CURTAIL_REQUIRES(mu_);
  // Takes all from `seat` and notifies them.
  void UnparkAll(std::vector<Thread*>& seat) CURTAIL_REQUIRES(mu_);
  void UnparkLast(std::vector<Thread*>& seat) CURTAIL_REQUIRES(mu_);
  bool dispatch() const CURTAIL_REQUIRES(mu_) { return config_.model.execution == Execution::kDispatch; }
  SpinBudget* spin() CURTAIL_REQUIRES(mu_) {
    return config_.model.reception == Reception::kPoll ? &spin_budget_ : nullptr;
  }

  // Immutable after construction.
  Receiver* const receiver_;
  absl::Status status_;
  std::vector<std::unique_ptr<Thread>> threads_;

  // Thread-safe by itself.
  SpinBudget spin_budget_;

  mutable Mutex mu_;
  Config config_ CURTAIL_GUARDED_BY(mu_);
  TaskList queue_ CURTAIL_GUARDED_BY(mu_);
  int holders_[kRoles] CURTAIL_GUARDED_BY(mu_) = {};  // threads that have each role
  // Parked threads, woken last-in first-out: the one whose caches are warmest. Network threads of dispatch
  // models park in idle_network_, all others that have a role in idle_, those without one in dormant_.
  std::vector<Thread*> idle_ CURTAIL_GUARDED_BY(mu_);
  std::vector<Thread*> idle_network_ CURTAIL_GUARDED_BY(mu_);
  std::vector<Thread*> dormant_ CURTAIL_GUARDED_BY(mu_);
  bool leading_ CURTAIL_GUARDED_BY(mu_) = false;  // a thread is in Await(), or on its way into or out of it
  bool stopping_ CURTAIL_GUARDED_BY(mu_) = false;
  int alive_ CURTAIL_GUARDED_BY(mu_) = 0;              // threads whose loop has not ended
  Parker* stopper_ CURTAIL_GUARDED_BY(mu_) = nullptr;  // who waits for alive_ to reach zero
};

}  // namespace curtail
