// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. One mutex guards the queue of ready tasks, the stacks of parked threads and the leadership. It is
// held for a few instructions at a time, never across a system call. The protocol:
//
//  R1  At most one thread is leader: only the leader calls Await().
//  R2  In-line: a thread that leaves Await() handles the events, queues what became ready, gives leadership
//  up, and
//      then takes a task like any other. Whoever takes a task while nobody leads wakes one parked thread,
//      which finds a task or the leadership. So while a task runs, a parked thread, if there is one,
//      receives.
//  R3  Dispatch: network threads only receive. They give leadership up before they handle, so that several
//  may read. R4  A thread parks only while holding the mutex with nothing for it to do; who takes it from the
//  stack of parked
//      threads wakes it, exactly once. The epoch of its Parker makes the wake-up stick (parker.h).
//  R5  Before a thread parks, leads, or waits for other services it flushes what it held back, so held output
//      never waits on a sleeping thread. (The last of the three is the waiter's part: WaitHint::receiver.)
//
// Races considered:
//  - A task queued by a thread outside the pool while the only in-line thread sits in Await(): Submit() wakes
//  Await().
//  - Stop() while a thread is on its way to park: stopping_ is set under the mutex and looked at under it
//  before.
//
// Not offered: priorities, work stealing, growing pools; the pools have the sizes of the config from the
// start.
#include "curtail/exec/executor.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <system_error>

#include "curtail/base/strings.h"

namespace curtail {
namespace {

void NameThread(std::thread& thread, const char* role, uint32_t index) {
  char name[24];
  std::snprintf(name, sizeof name, "%s-%u", role, index);
  name[15] = '\0';  // the kernel's limit
  pthread_setname_np(thread.native_handle(), name);
}

}  // namespace

Executor::Executor(const Config& config, Receiver* receiver)
    : config_(config),
      receiver_(receiver),
      spin_budget_(UsableCpus() - 1),
      spin_(config.model.reception == Reception::kPoll ? &spin_budget_ : nullptr) {
  status_ = StartThreads();
}

absl::Status Executor::StartThreads() {
  const bool dispatch = config_.model.execution == Execution::kDispatch;
  const uint32_t runners = dispatch ? config_.workers : config_.network;
  const uint32_t total = runners + (dispatch ? config_.network : 0);
  for (uint32_t i = 0; i < total; ++i) {
    threads_.push_back(std::make_unique<Thread>());
    threads_.back()->index = i;
  }
  // Signals are the program's affair: its handlers must not run on these threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  absl::Status status;
  for (uint32_t i = 0; i < total && status.ok(); ++i) {
    Thread& self = *threads_[i];
    const bool receives = !dispatch || i >= runners;
    const bool runs = i < runners;
    {
      MutexLock lock(mu_);
      ++alive_;
    }
    try {
      self.thread = std::thread([this, &self, receives, runs] { ThreadMain(self, receives, runs); });
      NameThread(self.thread, !dispatch ? "inline" : runs ? "worker" : "network", i);
    } catch (const std::system_error& e) {
      MutexLock lock(mu_);
      --alive_;
      status =
          absl::ResourceExhaustedError(Join("cannot start thread ", i + 1, " of ", total, " for ",
                                            config_.ToString(), ": ", e.what(), "; choose smaller pools"));
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  TaskList none;
  if (!status.ok()) Stop(Deadline::Infinite(), &none);
  return status;
}

void Executor::ThreadMain(Thread& self, bool receives, bool runs) {
  if (receives && runs) {
    InlineLoop(self);
  } else if (receives) {
    NetworkLoop(self);
  } else {
    WorkerLoop(self);
  }
  MutexLock lock(mu_);
  if (--alive_ == 0 && stopper_ != nullptr) stopper_->Notify();
}

Executor::~Executor() {
  TaskList dropped;
  Stop(Deadline::Infinite(), &dropped);
}

void Executor::Park(std::vector<Thread*>& idle, Thread& self) {
  idle.push_back(&self);
  const uint32_t ticket = self.parker.Ticket();
  mu_.Unlock();
  while (self.parker.Ticket() == ticket) self.parker.Wait(ticket, Deadline::Infinite());
  mu_.Lock();
}

void Executor::RunTask(Task* task, Thread& self, SpinBudget* spin, bool more) {
  mu_.Unlock();
  task->Run({.thread_index = self.index, .spin = spin, .receiver = receiver_, .more_ready = more});
  mu_.Lock();
}

void Executor::InlineLoop(Thread& self) {
  std::vector<Poller::Ready> events;
  bool held = false;  // this thread ran tasks since it last flushed
  MutexLock lock(mu_);
  while (!stopping_) {
    if (Task* task = queue_.Pop()) {
      const bool more = !queue_.empty();
      if ((!leading_ || more) && !idle_.empty()) {  // R2
        Thread* heir = idle_.back();
        idle_.pop_back();
        lock.Unlock();
        heir->parker.Notify();
        lock.Lock();
      }
      RunTask(task, self, spin_, more);
      held = true;
    } else if (held) {  // R5
      lock.Unlock();
      receiver_->Flush(self.index);
      held = false;
      lock.Lock();
    } else if (!leading_) {  // R1
      leading_ = true;
      lock.Unlock();
      TaskList ready;
      receiver_->Await(spin_, &events);
      receiver_->Handle(events, &ready);
      events.clear();
      lock.Lock();
      leading_ = false;
      queue_.Append(ready);
    } else {
      Park(idle_, self);
    }
  }
}

void Executor::NetworkLoop(Thread& self) {
  std::vector<Poller::Ready> events;
  MutexLock lock(mu_);
  while (!stopping_) {
    if (leading_) {
      Park(idle_network_, self);
      continue;
    }
    leading_ = true;
    lock.Unlock();
    TaskList ready;
    receiver_->Await(spin_, &events);
    lock.Lock();
    leading_ = false;
    Thread* heir = nullptr;
    if (!events.empty() && !idle_network_.empty()) {  // R3
      heir = idle_network_.back();
      idle_network_.pop_back();
    }
    lock.Unlock();
    if (heir != nullptr) heir->parker.Notify();
    receiver_->Handle(events, &ready);
    events.clear();
    Submit(ready);
    lock.Lock();
  }
}

void Executor::WorkerLoop(Thread& self) {
  bool held = false;
  MutexLock lock(mu_);
  while (!stopping_) {
    if (Task* task = queue_.Pop()) {
      RunTask(task, self, /*spin=*/nullptr, !queue_.empty());
      held = true;
    } else if (held) {  // R5
      lock.Unlock();
      receiver_->Flush(self.index);
      held = false;
      lock.Lock();
    } else {
      Park(idle_, self);
    }
  }
}

void Executor::Submit(TaskList& tasks) {
  if (tasks.empty()) return;
  constexpr size_t kMaxHeirs = 64;
  Thread* heirs[kMaxHeirs];
  size_t count = 0;
  bool wake_leader = false;
  {
    MutexLock lock(mu_);
    const size_t wanted = std::min(tasks.size(), kMaxHeirs);
    queue_.Append(tasks);
    while (count < wanted && !idle_.empty()) {
      heirs[count++] = idle_.back();
      idle_.pop_back();
    }
    wake_leader = count == 0 && leading_ && config_.model.execution == Execution::kInline;
  }
  for (size_t i = 0; i < count; ++i) heirs[i]->parker.Notify();
  if (wake_leader) receiver_->Wake();
}

bool Executor::Stop(Deadline deadline, TaskList* left_over) {
  Parker done;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    stopper_ = &done;
    for (Thread* thread : idle_) thread->parker.Notify();
    for (Thread* thread : idle_network_) thread->parker.Notify();
    idle_.clear();
    idle_network_.clear();
  }
  receiver_->Wake();
  bool ended = false;
  while (true) {
    const uint32_t ticket = done.Ticket();
    {
      MutexLock lock(mu_);
      ended = alive_ == 0;
      if (ended || deadline.Expired()) {
        stopper_ = nullptr;
        left_over->Append(queue_);
        break;
      }
    }
    done.Wait(ticket, deadline);
  }
  if (!ended) return false;
  for (auto& thread : threads_) {
    if (thread->thread.joinable()) thread->thread.join();
  }
  return true;
}

}  // namespace curtail
