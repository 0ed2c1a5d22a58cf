// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. All threads are started once. In-line threads receive and run; workers run; network threads
// receive; response threads take the replies that asynchronous requests wait for, and run their continuations,
// as an in-line pool of its own does; fiber threads run many requests in turns (executor_fiber.cc); the rest
// sleep. One table, kParts in executor_thread.h, says of each role what its thread does and where it parks. The
// config says how many may have each role (executor_switch.cc), and a thread that comes back from a step settles
// anew: it gives up a role that too many have, and takes one that too few have. One mutex guards the config, the
// roles, the orders of waiting tasks (order.h), the stacks of parked threads and the leaderships. It is held for
// a few instructions at a time, never across a system call other than a rare wake-up. Tasks come from two
// stations, reception and response, which follow the same rules. The protocol:
//
//  R1  A station has at most one leader: only the leader calls Await().
//  R2  In-line: a thread that leaves Await() handles the events, queues what became ready, gives leadership
//      up, and then takes a task like any other. A thread that takes a task while none leads, or while more
//      tasks wait, wakes one parked thread, which finds a task or the leadership. So while a task runs, a parked
//      thread, if any, receives.
//  R3  Dispatch: network threads only receive. They give leadership up before they handle, so that several
//      may read.
//  R4  A thread parks only while holding the mutex, with nothing for it to do; the thread that takes it
//      from its seat wakes it, exactly once. The epoch of its Parker makes the wake-up stick (parker.h). That wake-up
//      may be late: the thread has left the wait by itself (F2 of executor_fiber.cc) and parks again. So a thread that
//      is awake leaves the seat, if nobody has taken it from there.
//  R5  Before a thread parks, leads, or waits for other services it flushes what it held back, so held output
//      never waits on a sleeping thread. (The last of the three is the waiter's part: WaitHint::outbox.) Most often
//      it has by then, because a thread that took the last ready task flushes when that has run.
//
//  R6  In-line threads that all wait for other services leave none to receive. So each looks at the reception from
//      time to time (ReceiveMeanwhile), as its leader for that moment. A thread that came back meanwhile may have parked
//      as its follower: the looker wakes it. What becomes ready is run by the first thread that has time.
//
// Switching to another config, by any thread:
//
//  S1  Under the mutex the config is exchanged, every thread parked in a role is woken to settle anew, and so
//      many of the sleeping ones as the config has roles. Busy threads keep their roles meanwhile, beyond the
//      number allowed. If the new config has that role, too, a thread loses it whose task may wait on it. So no role
//      of the new config waits for a busy thread as long as others are free.
//  S2  Then the leaders, if there are any, are woken out of Await(), so that they wait as the new config says,
//      or not at all.
//  S3  A thread that runs a task finishes it as it began; the new config shows when it comes back for its
//      next step.
//  S4  A thread without a receiving role that finds no leader wakes a parked receiver, and one without a
//      running role that finds tasks wakes a parked runner. So whatever the roles become, there is a leader
//      and there are runners as long as a thread is free for it.
//  S5  Roles on fibers differ from those without. A thread whose fibers live on after its role is gone serves
//      them to their end, waits for nothing else, and takes no other role before.
//  S6  Asynchronous requests outlive the thread that began them. While there are such, one thread at least has
//      the response role, in any config: the thread that begins the first, or ends the last, sees to that
//      under the mutex. While the executor stops, others may have ended: a thread that finds such requests and nobody
//      with the role takes it before it ends.
//  S7  The budget of pollers is closed and opened with the config. Pollers look at it, so those that are to
//      block do so without being woken, in Await() and in the waits of requests alike.
//
// Races considered:
//  - A task queued by a thread outside the pool while the only in-line thread sits in Await(): Submit() wakes
//    Await().
//  - Stop() while a thread is on its way to park: stopping_ is set under the mutex and looked at under it
//    before.
//  - A new receiver that wakes before the old leader has left Await() parks as its follower; the old leader,
//    whose role is gone, wakes it by S4.
//  - A switch from dispatch to in-line while a network thread reads what it got from Await(): perhaps no
//    thread is parked, and the new leader waits already. So it tells the leader of the tasks, as Submit() does.
//  - Two switches at once: the mutex orders them; threads follow the later one.
//  - A switch away from the asynchronous models between the first AsyncBegun() and its mutex: AsyncBegun()
//    finds the role vacant and wakes a sleeping thread; if there is none, the next thread that settles takes
//    the role before any other.
//
// The clock is read once for tasks that came together, and that time is good for the step that follows at once: a
// thread that received them takes the first without another look (Thread::now, WaitHint::now).
//
// Configs with stand-ins ("auto") have rules of their own, at the top of stand_ins.cc.
//
// Not offered: work stealing.
#include "curtail/exec/executor.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <utility>

#include "curtail/base/cpus.h"
#include "curtail/base/strings.h"
#include "curtail/exec/blocking.h"
#include "curtail/exec/internal/executor_thread.h"
#include "curtail/exec/internal/fifo_order.h"
#include "curtail/exec/signals.h"

namespace curtail {
namespace {

void NameThread(std::thread& thread, uint32_t index) {
  char name[16];
  std::snprintf(name, sizeof name, "pool-%u", index % 100000);
  pthread_setname_np(thread.native_handle(), name);
}

}  // namespace

Executor::Executor(const Config& config, const ExecutorOptions& options, Receiver* reception, Outbox* outbox,
                   Receiver* response)
    : options_(options),
      reception_source_(reception),
      outbox_(outbox),
      response_source_(response),
      cpus_(UsableCpus()),
      spin_budget_(cpus_ - 1),
      config_(config) {
  reception_.order = options.order == nullptr ? MakeFifoOrder() : options.order();
  response_.order = MakeFifoOrder();  // replies: their requests have begun
  const uint32_t held = TasksHold(config);
  const uint32_t beside = held > 0 ? reception_.order->Beside(held) : 0;
  const uint32_t total = std::max<uint32_t>(options.max_threads, config.threads()) + beside;
  for (uint32_t i = 0; i < total; ++i) threads_.push_back(std::make_unique<Thread>(i));
  outbox_->Prepare(threads_.size());
  TellThreads(config);
  status_ = Check(config);
  if (status_.ok() && config.model.waiting == Waiting::kFiber) status_ = EnsureLoops();
  if (status_.ok()) status_ = StartThreads();
  if (status_.ok() && config.stand_ins) status_ = StartGuard();
}

Executor::~Executor() {
  TaskList dropped;
  Stop(Deadline::Infinite(), &dropped);
}

absl::Status Executor::StartThreads() {
  const SignalsKeptOut kept_out;
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
  TaskList none;
  if (!status.ok()) Stop(Deadline::Infinite(), &none);
  return status;
}

void Executor::ThreadMain(Thread& self) {
  blocking_watcher = options_.watcher;
  self.tid.store(gettid(), std::memory_order_relaxed);
  MutexLock lock(mu_);
  while (!stopping_ || HasDuties(self)) Step(self);
  SetRole(self, kNone);
  if (--alive_ == 0 && stopper_ != nullptr) stopper_->Notify();
}

bool Executor::HasDuties(const Thread& self) const {
  return !aside_.empty() || self.fibers() > 0 ||
         (async_live_.load(std::memory_order_seq_cst) > 0 &&
          (self.role == kResponse || holders_[kResponse] == 0));  // S6
}

void Executor::Step(Thread& self) {
  if (!Settled(self)) {
    Settle(self);
    if (self.role != kFiberInline) Unnest(self);
  }
  // With no thread to spare, everybody is one.
  if (!aside_.empty() && self.fibers() == 0 && (self.role == kNone || Spare() == 0 || stopping_)) {
    return RunAside(self);
  }
  const Part& part = kParts[self.role];
  // One that receives and runs requests leaves at most replies to others.
  const bool whole = part.receives && part.runs && self.role != kResponse;
  if (!whole || !seats_[kResponders].empty()) WakeForOthers(self);
  if (part.fibers) return StepFibers(self);
  if (self.role == kNone && self.fibers() > 0) return StepFibers(self);  // S5
  if (part.runs && RunOne(self, this->*part.station)) return;
  if (FlushHeld(self)) return;
  if (part.receives && Receive(self, this->*part.station, *(this->*part.source))) return;
  Park(part.seat, self);
}

WaitHint Executor::HintFor(Thread& self) {
  const bool fibers = kParts[self.role].fibers || self.fibers() > 0;
  const bool async = config_.model.waiting == Waiting::kAsync || self.role == kResponse;
  return {.thread_index = self.index,
          .waiting = fibers  ? Waiting::kFiber
                     : async ? Waiting::kAsync
                             : Waiting::kSync,
          .spin = self.role == kInline ? spin() : nullptr,
          .executor = this,
          .outbox = outbox_,
          .response = response_source_,
          .loop = fibers ? self.loop_owner.get() : nullptr,
          .waits = &self.waits,
          .stand_ins = config_.stand_ins,
          .receives = self.role == kInline};
}

Order::Next Executor::Pop(Station& station, TimePoint* now) {
  if (station.order->ready() == 0) return {};
  if (*now == TimePoint()) *now = Now();
  const Order::Next next = station.order->Pop(*now);
  const Nanos waited = *now - next.task->queued_at();
  ++begun_;
  queue_wait_ += waited;
  max_queue_wait_ = std::max(max_queue_wait_, waited);
  return next;
}

bool Executor::RunOne(Thread& self, Station& station) {
  TimePoint now = std::exchange(self.now, TimePoint());
  const Order::Next next = Pop(station, &now);
  if (next.task == nullptr) return false;
  const bool more = station.order->ready() > 0;
  WaitHint hint = HintFor(self);
  hint.now = now;
  hint.more_ready = more;
  hint.shed = next.shed;
  const bool receives = kParts[self.role].receives;
  Thread* const heir = receives && (!station.leading || more) ? TakeLast(station.idle) : nullptr;  // R2
  self.held = more;
  self.busy = hint.waiting == Waiting::kSync;
  bool look = false;
  if (self.busy) hint.look = &look;
  mu_.Unlock();
  Rouse(heir);
  {
    const ScopedWait scope(hint);
    next.task->RunContained(hint);
  }
  if (!more) outbox_->Flush(self.index);  // R5: it is likely to wait next
  mu_.Lock();
  self.busy = false;
  if (look) LookAtHeld(station);
  return true;
}

// This thread takes one next, unless it is needed aside. If it has no role for that any more, S4 wakes a runner.
void Executor::LookAtHeld(Station& station) {
  Order& order = *station.order;
  const size_t others = order.ready() + (aside_.empty() ? 1 : 0);
  TaskList none;
  order.Append(none);
  if (order.ready() > others) WakeRunners(station, *reception_source_, order.ready() - others, !dispatch());
}

void Executor::RunAside(Thread& self) {
  self.now = TimePoint();
  Task* task = aside_.Pop();
  WaitHint hint = HintFor(self);
  hint.waiting = Waiting::kSync;
  self.held = true;
  self.busy = true;
  mu_.Unlock();
  hint.now = Now();
  {
    const ScopedWait scope(hint);
    task->RunContained(hint);
  }
  mu_.Lock();
  self.busy = false;
  --aside_live_;
}

bool Executor::TryRunAside(Task* task) {
  MutexLock lock(mu_);
  if (stopping_ || aside_live_ >= Spare()) return false;
  GiveAside(task);
  return true;
}

void Executor::GiveAside(Task* task) {
  ++aside_live_;
  TaskList one;
  one.Push(task);
  aside_.Append(one);
  Thread* const helper = TakeLast(kSleepers);  // without one, a thread on its way there finds the task
  mu_.Unlock();
  Rouse(helper);
  mu_.Lock();
}

bool Executor::FlushHeld(Thread& self) {  // R5
  if (!std::exchange(self.held, false)) return false;
  self.now = TimePoint();
  mu_.Unlock();
  outbox_->Flush(self.index);
  mu_.Lock();
  return true;
}

bool Executor::Receive(Thread& self, Station& station, Receiver& source) {
  if (station.leading) return false;  // R1
  station.leading = true;
  const bool give_up_early = self.role == kNetwork;
  SpinBudget* const spin_here = spin();
  mu_.Unlock();
  TaskList ready;
  self.waits.store(true, std::memory_order_relaxed);
  source.Await(Deadline::Infinite(), spin_here, &self.events);
  self.waits.store(false, std::memory_order_relaxed);
  if (give_up_early) {  // R3
    mu_.Lock();
    station.leading = false;
    Thread* const heir = self.events.empty() ? nullptr : TakeLast(kReceivers);
    mu_.Unlock();
    Rouse(heir);
  }
  source.Handle(self.events, &ready);
  self.events.clear();
  mu_.Lock();
  if (!give_up_early) station.leading = false;
  const size_t before = station.order->ready();
  self.now = Append(station, ready);
  const size_t count = station.order->ready() - before;
  if (give_up_early && count > 0) WakeRunners(station, source, count, !dispatch());
  return true;
}

void Executor::ReceiveMeanwhile(uint32_t thread_index) {  // R6
  Thread& self = *threads_[thread_index];
  MutexLock lock(mu_);
  if (self.role != kInline || reception_.leading) return;
  reception_.leading = true;
  mu_.Unlock();
  TaskList ready;
  reception_source_->Await(Deadline::At(TimePoint()), nullptr, &self.events);
  reception_source_->Handle(self.events, &ready);
  self.events.clear();
  mu_.Lock();
  reception_.leading = false;
  Append(reception_, ready);
  Thread* const runner = TakeLast(kRunners);
  Thread* const receiver = TakeLast(kReceivers);  // of a config that came meanwhile
  mu_.Unlock();
  Rouse(runner);
  Rouse(receiver);
  mu_.Lock();
}

void Executor::Park(Seat seat, Thread& self) {
  self.now = TimePoint();
  seats_[seat].push_back(&self);
  self.seated = self.parked = true;
  const uint32_t ticket = self.parker.Ticket();
  mu_.Unlock();
  while (self.parker.Ticket() == ticket) self.parker.Wait(ticket, Deadline::Infinite());
  mu_.Lock();
  self.parked = false;
  LeaveSeat(self, seat);
}

void Executor::LeaveSeat(Thread& self, Seat seat) {
  if (std::exchange(self.seated, false)) std::erase(seats_[seat], &self);
}

Executor::Thread* Executor::TakeLast(Seat seat) {  // R4
  std::vector<Thread*>& parked = seats_[seat];
  if (parked.empty()) return nullptr;
  Thread* const last = parked.back();
  parked.pop_back();
  last->seated = false;
  return last;
}

void Executor::Rouse(Thread* thread) {
  if (thread == nullptr) return;
  thread->parker.Notify();
  if (FiberLoop* loop = thread->loop.load(std::memory_order_acquire)) loop->Rouse();
}

void Executor::UnparkAll(Seat seat) {
  while (!seats_[seat].empty()) UnparkLast(seat);
}

TimePoint Executor::Append(Station& station, TaskList& tasks) {
  if (tasks.empty()) return TimePoint();
  const TimePoint now = Now();
  tasks.Stamp(now);
  station.order->Append(tasks);
  return now;
}

void Executor::Submit(TaskList& requests) {
  MutexLock lock(mu_);
  Order& order = *reception_.order;
  const size_t before = order.ready();
  if (!requests.empty()) requests.Stamp(Now());
  order.Append(requests);
  if (order.ready() > before) {
    WakeRunners(reception_, *reception_source_, order.ready() - before, !dispatch());
  }
}

void Executor::SubmitResponse(TaskList& replies) {
  if (replies.empty()) return;
  MutexLock lock(mu_);
  const size_t count = replies.size();
  Append(response_, replies);
  WakeRunners(response_, *response_source_, count, true);
}

void Executor::WakeRunners(Station& station, Receiver& source, size_t count, bool leader_runs) {
  constexpr size_t kMaxHeirs = 64;
  Thread* heirs[kMaxHeirs];
  size_t found = 0;
  while (found < std::min(count, kMaxHeirs) && !seats_[station.idle].empty())
    heirs[found++] = TakeLast(station.idle);
  const bool wake_leader = leader_runs && found < count && station.leading;
  mu_.Unlock();
  for (size_t i = 0; i < found; ++i) Rouse(heirs[i]);
  if (wake_leader) source.Wake();
  mu_.Lock();
}

bool Executor::Stop(Deadline deadline, TaskList* left_over) {
  {
    MutexLock lock(guard_mu_);
    guard_started_ = true;  // it starts no more
    guard_.Stop();
  }
  Parker done;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    stopper_ = &done;
    for (const Seat seat : {kRunners, kResponders, kReceivers, kSleepers}) UnparkAll(seat);
  }
  reception_source_->Wake();
  if (response_source_ != nullptr) response_source_->Wake();
  bool ended = false;
  while (true) {
    const uint32_t ticket = done.Ticket();
    {
      MutexLock lock(mu_);
      ended = alive_ == 0;
      if (ended || deadline.Expired()) {
        stopper_ = nullptr;
        reception_.order->TakeAll(left_over);
        response_.order->TakeAll(left_over);
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
