// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. All threads are started once. In-line threads receive and run; workers run; network threads
// receive; the rest sleep. The config says how many may have each role, and a thread that comes back from a
// step settles anew: it gives up a role that too many have, and takes one that too few have. One mutex guards
// the config, the roles, the queue of ready tasks, the stacks of parked threads and the leadership. It is
// held for a few instructions at a time, never across a system call other than a rare wake-up. The protocol:
//
//  R1  At most one thread is leader: only the leader calls Await().
//  R2  In-line: a thread that leaves Await() handles the events, queues what became ready, gives leadership
//      up, and then takes a task like any other. Whoever takes a task while nobody leads, or while more tasks
//      wait, wakes one parked thread, which finds a task or the leadership. So while a task runs, a parked
//      thread, if any, receives.
//  R3  Dispatch: network threads only receive. They give leadership up before they handle, so that several
//      may read.
//  R4  A thread parks only while holding the mutex, with nothing for it to do; who takes it from its seat
//      wakes it, exactly once. The epoch of its Parker makes the wake-up stick (parker.h).
//  R5  Before a thread parks, leads, or waits for other services it flushes what it held back, so held output
//      never waits on a sleeping thread. (The last of the three is the waiter's part: WaitHint::receiver.)
//
// Switching to another config, by any thread:
//
//  S1  Under the mutex the config is exchanged, every thread parked in a role is woken to settle anew, and so
//      many of the sleeping ones as the config has roles. Busy threads keep their roles meanwhile, beyond the
//      number allowed, so a new role never waits for a thread that is busy in an old one as long as there are
//      sleeping threads.
//  S2  Then the leader, if there is one, is woken out of Await(), so that it waits as the new config says, or
//      not at all.
//  S3  A thread that runs a task finishes it as it began; the new config shows when it comes back for its
//      next step.
//  S4  A thread without a receiving role that finds nobody leading wakes a parked receiver, and one without a
//      running role that finds tasks wakes a parked runner. So whatever the roles become, there is a leader
//      and there are runners as long as a thread is free for it.
//
// Races considered:
//  - A task queued by a thread outside the pool while the only in-line thread sits in Await(): Submit() wakes
//    Await().
//  - Stop() while a thread is on its way to park: stopping_ is set under the mutex and looked at under it
//    before.
//  - A new receiver that wakes before the old leader has left Await() parks as its follower; the old leader,
//    whose role is gone, wakes it by S4.
//  - Two switches at once: the mutex orders them; threads follow the later one.
//
// Not offered: priorities, work stealing.
#include "curtail/exec/executor.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail {
namespace {

void NameThread(std::thread& thread, uint32_t index) {
  char name[16];
  std::snprintf(name, sizeof name, "pool-%u", index % 100000);
  pthread_setname_np(thread.native_handle(), name);
}

}  // namespace

Executor::Executor(const Config& config, uint32_t max_threads, Receiver* receiver)
    : receiver_(receiver), spin_budget_(UsableCpus() - 1), config_(config) {
  const uint32_t total = std::max<uint32_t>(max_threads, config.network + config.workers);
  for (uint32_t i = 0; i < total; ++i) threads_.push_back(std::make_unique<Thread>(i));
  status_ = StartThreads();
}

Executor::~Executor() {
  TaskList dropped;
  Stop(Deadline::Infinite(), &dropped);
}

absl::Status Executor::StartThreads() {
  // Signals are the program's affair: its handlers must not run on these threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  absl::Status status;
  for (size_t i = 0; i < threads_.size() && status.ok(); ++i) {
    Thread& self = *threads_[i];
    {
      MutexLock lock(mu_);
      ++alive_;
    }
    try {
      self.thread = std::thread([this, &self] { ThreadMain(self); });
      NameThread(self.thread, self.index);
    } catch (const std::system_error& e) {
      MutexLock lock(mu_);
      --alive_;
      status = absl::ResourceExhaustedError(Join("cannot start thread ", i + 1, " of ", threads_.size(), ": ",
                                                 e.what(), "; choose smaller pools"));
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  TaskList none;
  if (!status.ok()) Stop(Deadline::Infinite(), &none);
  return status;
}

int Executor::Allowed(Role role) const {
  switch (role) {
    case kInline:
      return dispatch() ? 0 : config_.network;
    case kWorker:
      return dispatch() ? config_.workers : 0;
    case kNetwork:
      return dispatch() ? config_.network : 0;
    default:
      return 0;
  }
}

void Executor::Settle(Thread& self) {
  if (self.role != kNone && holders_[self.role] > Allowed(self.role)) {
    --holders_[self.role];
    self.role = kNone;
  }
  if (self.role != kNone) return;
  for (const Role role : {kNetwork, kInline, kWorker}) {
    if (holders_[role] < Allowed(role)) {
      ++holders_[role];
      self.role = role;
      return;
    }
  }
}

absl::Status Executor::Check(const Config& config) const {
  if (config.model.waiting != Waiting::kSync) {
    return absl::InvalidArgumentError(Join(
        "config ", config.ToString(), ": only the synchronous models (SIB, SIP, SDB, SDP) are available"));
  }
  const bool dispatch = config.model.execution == Execution::kDispatch;
  if (config.network < 1 || (dispatch && config.workers < 1)) {
    return absl::InvalidArgumentError(Join("config ", config.ToString(), ": a pool is empty"));
  }
  if (static_cast<size_t>(config.network) + config.workers > threads_.size()) {
    return absl::InvalidArgumentError(Join("config ", config.ToString(), " needs ",
                                           config.network + config.workers,
                                           " threads; this server was started with ", threads_.size()));
  }
  return absl::OkStatus();
}

absl::Status Executor::SwitchTo(const Config& config) {
  if (absl::Status checked = Check(config); !checked.ok()) return checked;
  bool wake_leader = false;
  {
    MutexLock lock(mu_);
    config_ = config;
    UnparkAll(idle_);  // S1
    UnparkAll(idle_network_);
    for (int i = 0; i < config.network + config.workers; ++i) UnparkLast(dormant_);
    wake_leader = leading_;
  }
  if (wake_leader) receiver_->Wake();  // S2
  return absl::OkStatus();
}

Config Executor::config() const {
  MutexLock lock(mu_);
  return config_;
}

void Executor::ThreadMain(Thread& self) {
  MutexLock lock(mu_);
  while (!stopping_) {
    Settle(self);
    if (!leading_ && (self.role == kWorker || self.role == kNone))
      UnparkLast(dispatch() ? idle_network_ : idle_);                                         // S4
    if (!queue_.empty() && (self.role == kNetwork || self.role == kNone)) UnparkLast(idle_);  // S4
    switch (self.role) {
      case kInline:
        if (!RunOne(self) && !FlushHeld(self) && !Receive(self)) Park(idle_, self);
        break;
      case kWorker:
        if (!RunOne(self) && !FlushHeld(self)) Park(idle_, self);
        break;
      case kNetwork:
        if (!FlushHeld(self) && !Receive(self)) Park(idle_network_, self);
        break;
      default:
        if (!FlushHeld(self)) Park(dormant_, self);
    }
  }
  if (--alive_ == 0 && stopper_ != nullptr) stopper_->Notify();
}

bool Executor::RunOne(Thread& self) {
  Task* task = queue_.Pop();
  if (task == nullptr) return false;
  const bool more = !queue_.empty();
  const bool in_line = self.role == kInline;
  SpinBudget* const spin_here = in_line ? spin() : nullptr;
  Thread* const heir = in_line && (!leading_ || more) ? TakeLast(idle_) : nullptr;  // R2
  self.held = true;
  mu_.Unlock();
  if (heir != nullptr) heir->parker.Notify();
  task->Run({.thread_index = self.index, .spin = spin_here, .receiver = receiver_, .more_ready = more});
  mu_.Lock();
  return true;
}

bool Executor::FlushHeld(Thread& self) {  // R5
  if (!std::exchange(self.held, false)) return false;
  mu_.Unlock();
  receiver_->Flush(self.index);
  mu_.Lock();
  return true;
}

bool Executor::Receive(Thread& self) {
  if (leading_) return false;  // R1
  leading_ = true;
  const bool give_up_early = self.role == kNetwork;
  SpinBudget* const spin_here = spin();
  mu_.Unlock();
  TaskList ready;
  receiver_->Await(spin_here, &self.events);
  if (give_up_early) {  // R3
    mu_.Lock();
    leading_ = false;
    Thread* const heir = self.events.empty() ? nullptr : TakeLast(idle_network_);
    mu_.Unlock();
    if (heir != nullptr) heir->parker.Notify();
  }
  receiver_->Handle(self.events, &ready);
  self.events.clear();
  if (give_up_early) {
    Submit(ready);
    mu_.Lock();
  } else {
    mu_.Lock();
    leading_ = false;
    queue_.Append(ready);
  }
  return true;
}

void Executor::Park(std::vector<Thread*>& seat, Thread& self) {
  seat.push_back(&self);
  const uint32_t ticket = self.parker.Ticket();
  mu_.Unlock();
  while (self.parker.Ticket() == ticket) self.parker.Wait(ticket, Deadline::Infinite());
  mu_.Lock();
}

Executor::Thread* Executor::TakeLast(std::vector<Thread*>& seat) {  // R4
  if (seat.empty()) return nullptr;
  Thread* last = seat.back();
  seat.pop_back();
  return last;
}

void Executor::UnparkLast(std::vector<Thread*>& seat) {
  if (Thread* last = TakeLast(seat)) last->parker.Notify();
}

void Executor::UnparkAll(std::vector<Thread*>& seat) {
  while (!seat.empty()) UnparkLast(seat);
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
    while (count < wanted && !idle_.empty()) heirs[count++] = TakeLast(idle_);
    wake_leader = count == 0 && leading_ && !dispatch();
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
    UnparkAll(idle_);
    UnparkAll(idle_network_);
    UnparkAll(dormant_);
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
