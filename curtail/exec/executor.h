// SPDX-License-Identifier: Apache-2.0
//
// executor.h - the thread pools of a server, composed from a config: reception, execution, waiting.
//
// In-line pools run the request on a thread that received it; dispatch pools hand it to a worker.
// In fiber models these threads run many requests in turns. In asynchronous models a third pool
// takes the replies that requests wait for. The Receiver knows the sockets, and the Task the
// request.
//
// Thread safety: all methods from any thread, but Stop() once and from outside the pools.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/config.h"
#include "curtail/exec/fiber.h"
#include "curtail/exec/internal/guard_pace.h"
#include "curtail/exec/internal/spin_budget.h"
#include "curtail/exec/internal/ticker.h"
#include "curtail/exec/order.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/poller.h"
#include "curtail/exec/receiver.h"
#include "curtail/exec/stats.h"
#include "curtail/exec/task.h"

namespace curtail {

class BlockingWatcher;

struct ExecutorOptions {
  // Threads started, of which a config uses some and the rest sleep; never fewer than the first
  // config needs. The threads that the order wants beside that config's (Order::Beside) are more.
  uint32_t max_threads = 64;
  FiberOptions fiber;
  // Hears each time one of the threads sleeps or wakes up, from their start to their end; outlives
  // the executor. For policies that count blocked threads: it costs each wait two calls. Null:
  // none.
  BlockingWatcher* watcher = nullptr;
  // Makes the order of waiting requests, once. Null: first come, first served (fifo_order.h).
  std::function<std::unique_ptr<Order>()> order = nullptr;
  // Under a config with stand-ins: hears that tasks of a kind were found to block. Called when they
  // begin to, and when they begin again for the second, fourth, eighth time and so on; by any
  // thread, which holds no lock.
  std::function<void(const TaskKind& kind)> on_blocking = nullptr;
};

// An Executor runs the tasks that its receivers produce, on the pools of a Config, which may be
// exchanged for another at any time.
class Executor {
 public:
  // Starts all threads it will ever have; those without a role in the config sleep. The receivers
  // and the outbox outlive the executor. `response` takes the replies in asynchronous models;
  // without it there are no such models.
  Executor(const Config& config, const ExecutorOptions& options, Receiver* reception, Outbox* outbox,
           Receiver* response);
  // Stops, if Stop() was not called.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // RESOURCE_EXHAUSTED if a thread could not be started: then none runs.
  const absl::Status& status() const { return status_; }

  // Gives every thread its role in `config`. Running requests finish as they began; none is lost,
  // doubled or delayed. Never waits for one.
  // Errors: INVALID_ARGUMENT for a model it has not, or one that needs more threads than there are;
  // RESOURCE_EXHAUSTED for lack of file descriptors.
  absl::Status SwitchTo(const Config& config);
  // Does the part of the first SwitchTo() to such a config that takes some milliseconds: fiber
  // models need a loop for each thread. Errors as SwitchTo().
  absl::Status Prepare(const Config& config);
  // Makes threads wait as `reception` says, without another change to the config. Pollers stop at
  // once if they are to block; blocked threads go on until their wait ends. Cheap, because no
  // thread wakes up. A BlockingWatcher may call it.
  void SetReception(Reception reception);
  Config config() const;
  ExecutorStats Sample();

  // Queues tasks that became ready outside of Handle(). Never blocks. After Stop() they do not run.
  // An empty list wakes threads for tasks that the order held back before (rule O5 of order.h).
  void Submit(TaskList& requests);
  // The same for tasks of the response pool.
  void SubmitResponse(TaskList& replies);
  // A request waits for replies without a thread, until AsyncEnded(). While there are such
  // requests, a thread takes replies, whatever the config.
  void AsyncBegun();
  void AsyncEnded();
  // Notes that tasks of `kind` block now, and did not before.
  void OnBlocking(const TaskKind& kind) const;
  // Runs `task`, which may block, on a thread that has no role in the config. False if more such
  // tasks are in flight than there are such threads. Never blocks.
  bool TryRunAside(Task* task);

  // For a thread of an in-line pool (WaitHint::receives), called every kMeanwhile while its task
  // waits for other services: takes what has come from the receiver, if no thread does, and queues
  // requests that are ready. So a caller's cancellation reaches a handler that waits, even if all
  // threads wait. Never blocks.
  void ReceiveMeanwhile(uint32_t thread_index);
  static constexpr Nanos kMeanwhile = std::chrono::milliseconds(10);

  // Ends every thread once it has finished its task; tasks that did not run go to `left_over`.
  // Waits for running tasks until `deadline`. False if some were still running then: call again, or
  // let the destructor wait.
  bool Stop(Deadline deadline, TaskList* left_over);

  // Threads that may run tasks: the indices in WaitHint are below this.
  uint32_t thread_count() const { return static_cast<uint32_t>(threads_.size()); }

 private:
  // The rows of kParts; a thread without a role takes the first of these that too few have.
  enum Role { kNone, kResponse, kNetwork, kInline, kWorker, kFiberInline, kFiberWorker, kRoles };
  // Where parked threads sit, woken last-in first-out: the warmest caches first.
  enum Seat { kSleepers, kRunners, kReceivers, kResponders, kSeats };
  struct Part;
  static const Part kParts[kRoles];  // executor_thread.h
  struct Thread;
  struct ReceptionSignal;
  // The source of one kind of task, and its queue for threads.
  struct Station {
    std::unique_ptr<Order> order;
    Seat idle;             // of the threads that run these tasks
    bool leading = false;  // a thread is in Await(), or on its way into or out of it
  };

  absl::Status Check(const Config& config) const;
  absl::Status EnsureLoops();
  absl::Status StartThreads();
  void ThreadMain(Thread& self);
  void Step(Thread& self) CURTAIL_REQUIRES(mu_);
  // True if a duty keeps the thread from ending when the pools stop.
  bool HasDuties(const Thread& self) const CURTAIL_REQUIRES(mu_);
  // Threads that the config leaves without a role.
  size_t Spare() const CURTAIL_REQUIRES(mu_);

  // Stand-ins: stand_ins.cc.
  enum class Hold { kNone, kBusy, kAsleep };
  struct Suspect;
  int StandIns() const CURTAIL_REQUIRES(mu_);
  absl::Status StartGuard();
  // One look at all threads; returns the time until the next.
  Nanos Guard(TimePoint now);
  // Finds the threads whose loop is in a run. If there is none, the time until the next look.
  std::optional<Nanos> FindRunning();
  // Leaves tasks that are held up.
  void FindHeldUp(TimePoint now);
  void NoteHolds();
  bool NeedsItsOwnThread(Task& task) const CURTAIL_REQUIRES(mu_);
  // True if the guard sleeps, and has to be woken: a task is about to run.
  bool GuardSleeps() CURTAIL_REQUIRES(mu_);
  void WakeGuard();
  // The thread is back from a task that held it up.
  void Release(Thread& self) CURTAIL_REQUIRES(mu_);

  // The threads that tasks may hold while they wait, without those beside.
  static uint32_t TasksHold(const Config& config);
  // Tells the order, and gives it what threads it wants beside, as far as the config leaves them.
  void TellThreads(const Config& config) CURTAIL_REQUIRES(mu_);
  int Allowed(Role role) const CURTAIL_REQUIRES(mu_);
  bool Vacant(Role role) const CURTAIL_REQUIRES(mu_) { return holders_[role] < Allowed(role); }
  // Gives up a role that too many threads have, and takes one that too few have.
  void Settle(Thread& self) CURTAIL_REQUIRES(mu_);
  // Takes roles from threads whose tasks may wait on them, as far as others are free (S1).
  void VacateBusy() CURTAIL_REQUIRES(mu_);
  // True if Settle() would change nothing; quick, and false when in doubt.
  bool Settled(const Thread& self) const CURTAIL_REQUIRES(mu_);
  void SetRole(Thread& self, Role role) CURTAIL_REQUIRES(mu_);
  void WakeForOthers(Thread& self) CURTAIL_REQUIRES(mu_);

  // Steps of a role; false when there was nothing to do.
  bool RunOne(Thread& self, Station& station) CURTAIL_REQUIRES(mu_);
  // Takes back tasks that the order held back; the present thread runs one of them.
  void LookAtHeld(Station& station) CURTAIL_REQUIRES(mu_);
  bool FlushHeld(Thread& self) CURTAIL_REQUIRES(mu_);
  bool Receive(Thread& self, Station& station, Receiver& source) CURTAIL_REQUIRES(mu_);
  void RunAside(Thread& self) CURTAIL_REQUIRES(mu_);
  // Gives `task` to a thread without a role, or to the first that has none.
  void GiveAside(Task* task) CURTAIL_REQUIRES(mu_);
  void StepFibers(Thread& self) CURTAIL_REQUIRES(mu_);
  bool StillIdle(Thread& self) CURTAIL_REQUIRES(mu_);
  bool RunFibers(Thread& self, bool serving) CURTAIL_REQUIRES(mu_);
  void WaitForFibers(Thread& self, bool serving) CURTAIL_REQUIRES(mu_);
  void LeadWithFibers(Thread& self, bool wait) CURTAIL_REQUIRES(mu_);
  // The thread's loop hears of the events of the reception, for now not, or not at all.
  void Arm(Thread& self);
  void Disarm(Thread& self);
  void Unnest(Thread& self);

  // The task whose turn it is, null if none is ready; notes how long it waited.
  // `*now` is the time, or zero: then it is read, if there is a task.
  Order::Next Pop(Station& station, TimePoint* now) CURTAIL_REQUIRES(mu_);
  // Returns the time, zero if there were no tasks.
  TimePoint Append(Station& station, TaskList& tasks) CURTAIL_REQUIRES(mu_);
  // Wakes runners for `count` tasks just appended. If too few are parked, tells the leader, too, if
  // that runs them.
  void WakeRunners(Station& station, Receiver& source, size_t count, bool leader_runs) CURTAIL_REQUIRES(mu_);
  // Sleeps in `seat` until taken from it and notified.
  void Park(Seat seat, Thread& self) CURTAIL_REQUIRES(mu_);
  // Leaves the seat, unless another thread has taken this one from it: R4.
  void LeaveSeat(Thread& self, Seat seat) CURTAIL_REQUIRES(mu_);
  // Takes the thread that parked last from its seat, if there is one. The caller rouses it, best
  // without the mutex.
  Thread* TakeLast(Seat seat) CURTAIL_REQUIRES(mu_);
  static void Rouse(Thread* thread);
  void UnparkAll(Seat seat) CURTAIL_REQUIRES(mu_);
  inline void UnparkLast(Seat seat) CURTAIL_REQUIRES(mu_);
  WaitHint HintFor(Thread& self) CURTAIL_REQUIRES(mu_);
  bool dispatch() const CURTAIL_REQUIRES(mu_) { return config_.model.execution == Execution::kDispatch; }
  inline SpinBudget* spin() CURTAIL_REQUIRES(mu_);
  void PutInForce(const Config& config) CURTAIL_REQUIRES(mu_);

  // Immutable after construction.
  const ExecutorOptions options_;
  Receiver* const reception_source_;
  Outbox* const outbox_;
  Receiver* const response_source_;  // null: no asynchronous models
  const int cpus_;                   // that the process may use
  absl::Status status_;
  std::vector<std::unique_ptr<Thread>> threads_;

  // Thread-safe by itself; closed while the config blocks.
  SpinBudget spin_budget_;
  // Atomic: requests that wait for replies without a thread. Changes order with mu_, see S6.
  std::atomic<int> async_live_{0};

  mutable Mutex mu_;
  Config config_ CURTAIL_GUARDED_BY(mu_);
  int beside_ CURTAIL_GUARDED_BY(mu_) = 0;             // threads, see Order::Beside()
  bool loops_ CURTAIL_GUARDED_BY(mu_) = false;         // every thread has its loop
  int holders_[kRoles] CURTAIL_GUARDED_BY(mu_) = {};   // threads that have each role
  uint64_t role_changes_ CURTAIL_GUARDED_BY(mu_) = 1;  // of config_ and holders_
  Station reception_ CURTAIL_GUARDED_BY(mu_){.idle = kRunners};
  Station response_ CURTAIL_GUARDED_BY(mu_){.idle = kResponders};
  std::vector<Thread*> seats_[kSeats] CURTAIL_GUARDED_BY(mu_);
  TaskList aside_ CURTAIL_GUARDED_BY(mu_);         // for threads without a role
  size_t aside_live_ CURTAIL_GUARDED_BY(mu_) = 0;  // those and the ones that run
  int held_asleep_ CURTAIL_GUARDED_BY(mu_) = 0;    // threads of each Hold
  int held_busy_ CURTAIL_GUARDED_BY(mu_) = 0;
  int runs_ CURTAIL_GUARDED_BY(mu_) = 0;  // of fibers, in progress or about to begin
  bool guard_sleeps_ CURTAIL_GUARDED_BY(mu_) = false;
  bool stopping_ CURTAIL_GUARDED_BY(mu_) = false;
  int alive_ CURTAIL_GUARDED_BY(mu_) = 0;              // threads whose loop has not ended
  Parker* stopper_ CURTAIL_GUARDED_BY(mu_) = nullptr;  // waits for alive_ to reach zero
  // Counters, for Sample().
  uint64_t begun_ CURTAIL_GUARDED_BY(mu_) = 0;
  Nanos queue_wait_ CURTAIL_GUARDED_BY(mu_){0};
  Nanos max_queue_wait_ CURTAIL_GUARDED_BY(mu_){0};

  // Owned by the guard.
  GuardPace pace_;
  std::vector<Suspect> suspects_;
  TimePoint looked_;        // when it last looked
  uint64_t runs_seen_ = 0;  // the sum over all threads then

  // Held to start and to stop the guard, before mu_.
  Mutex guard_mu_;
  bool guard_started_ CURTAIL_GUARDED_BY(guard_mu_) = false;
  Ticker guard_ CURTAIL_GUARDED_BY(guard_mu_);
};

}  // namespace curtail
