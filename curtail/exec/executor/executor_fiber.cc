// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A thread with a fiber role repeats one step: run fibers that are ready and begin new requests, flush
// what they posted, look for events or wait for them. A fiber worker waits on its own loop only. An in-line
// fiber thread that leads waits on its loop too: the poller of the reception is nested in it, so one wait
// covers requests and replies. In addition to the rules of executor.cc:
//
//  F1  The reception is armed in a loop from the moment its thread leads until the thread, no longer leading,
//      is woken for nothing. A leader that finds it armed and marked ready looks into it before it waits. Only loops
//      of threads that have led, and still have a role, nest it: each event of a socket calls all that nest it, armed
//      or not, and the sender pays for that.
//  F2  A thread that has live fibers and nothing to run sits in the seat of idle threads as others do, but
//      waits in its loop. It may leave the seat by itself, under the mutex; the thread that takes it from there
//      rouses it (FiberLoop::Rouse).
//  F3  After kBatch steps the thread looks for events even if there is more to run, so neither replies nor requests
//      wait behind an endless queue; after kSlowBatch steps if these took longer than kBatchTime. What the requests of
//      a batch send leaves together, so large batches share writes. If the look before took longer, the batch may last
//      twice as long: what many peers send at once is answered before more is read.
//  F4  Fibers that are ready go before requests that have not begun. But after one has yielded (Fiber::YieldIfLong),
//      and so is ready again, the thread looks for events, and begins as many as kFresh requests first. After a look
//      that took long the batch goes on, and requests begin first for half of its time: else streams of many messages,
//      which yield, would let it look again and again, and hold up all that it has received.
//  F5  If all requests of a thread were in one batch, it and the services that it calls would take turns, and wait for
//      each other. So a batch ends at its half if each of its requests waits and no other of the thread does: the
//      services work while the thread begins the rest. Unless the half leaves by more than kFewSends connections:
//      then twice as many sends cost more than that gains.
#include <algorithm>
#include <utility>

#include "curtail/exec/executor.h"
#include "curtail/exec/internal/executor_thread.h"

namespace curtail {
namespace {

constexpr int kBatch = 64;
constexpr int kSlowBatch = 16;
constexpr Nanos kBatchTime = std::chrono::microseconds(100);
constexpr Nanos kMaxBatchTime = std::chrono::milliseconds(20);
constexpr int kFresh = 8;
constexpr size_t kFewSends = 8;

// A part of the time of a batch that follows a long look is left: F3.
template <class Thread>
bool HasTime(const Thread& self, int part) {
  return self.batch_time > kBatchTime && self.batch_began != TimePoint() &&
         Now() - self.batch_began < self.batch_time / part;
}

}  // namespace

void Executor::Disarm(Thread& self) {
  if (self.signal == nullptr || !self.signal->armed) return;
  self.loop_owner->poller()->Disarm(reception_source_->poller().fd());
  self.signal->armed = self.signal->ready = false;
}

void Executor::Arm(Thread& self) {
  ReceptionSignal& signal = *self.signal;
  Poller& poller = *self.loop_owner->poller();
  const int reception = reception_source_->poller().fd();
  if (signal.nested) {
    poller.Rearm(reception);
  } else if (!(signal.nested = poller.Add(reception, self.signal).ok())) {
    signal.ready = true;  // the kernel has no room for it: poll
    return;
  }
  signal.armed = true;
}

void Executor::Unnest(Thread& self) {
  if (self.signal == nullptr || !self.signal->nested) return;
  self.loop_owner->poller()->Remove(reception_source_->poller().fd());
  self.signal->nested = self.signal->armed = self.signal->ready = false;
}

void Executor::StepFibers(Thread& self) {
  const bool serving = self.role != kNone && !stopping_;
  const uint64_t yields = self.loop_owner->yields();
  if (self.steps < kBatch && RunFibers(self, serving)) {
    const bool yielded = self.loop_owner->yields() != yields;
    self.steps = yielded && !HasTime(self, 1) ? kBatch : self.steps + 1;
    self.fair = self.fair || yielded;  // F4
    const bool half = self.steps == kBatch / 2 && self.live_fibers == kBatch / 2;
    if (half && outbox_->Holds(self.index) <= kFewSends) self.steps = kBatch;  // F5
    if (!StillIdle(self)) return;
  }
  self.now = TimePoint();
  if (FlushHeld(self) && !StillIdle(self)) return;
  self.steps = 0;
  self.batch_began = TimePoint();
  WaitForFibers(self, serving);
  self.live_fibers = self.fibers();
}

// True if another Step() would find nothing but to wait: nothing has come while the mutex was free, and the thread owes
// nobody a wake-up (S4).
bool Executor::StillIdle(Thread& self) {
  return reception_.order->ready() == 0 && !self.loop_owner->HasReady() && kParts[self.role].receives &&
         Settled(self) && !stopping_ && aside_.empty() && seats_[kResponders].empty();
}

bool Executor::RunFibers(Thread& self, bool serving) {
  FiberLoop& loop = *self.loop_owner;
  const bool ready = loop.HasReady();
  const bool fresh_first = self.fair && (self.steps < kFresh || HasTime(self, 2));
  TimePoint now = std::exchange(self.now, TimePoint());
  const Order::Next next =
      (!ready || fresh_first) && serving && !loop.full() ? Pop(reception_, &now) : Order::Next();
  Task* const task = next.task;
  const bool resume = ready && task == nullptr;
  if (!resume && task == nullptr) return false;
  if (resume) self.fair = false;
  if (task != nullptr) {
    if (self.batch_began == TimePoint()) {
      self.batch_began = now;
      const Nanos look = self.last_began == TimePoint() ? Nanos(0) : now - self.last_began;
      self.batch_time = std::clamp(2 * look, kBatchTime, kMaxBatchTime);
    }
    self.last_began = now;
    if (const bool over = now - self.batch_began > self.batch_time; over && self.steps >= kSlowBatch) {
      self.steps = kBatch;
    } else if (!over && self.batch_time > kBatchTime) {
      self.steps = std::min(self.steps, kBatch - 2);  // this step is not the last
    }
  }
  if (task != nullptr && !next.shed && NeedsItsOwnThread(*task)) {
    GiveAside(task);  // G4 of stand_ins.cc
    return true;
  }
  const bool more = reception_.order->ready() > 0;
  Thread* const heir = kParts[self.role].receives && (!reception_.leading || (task != nullptr && more))
                           ? TakeLast(kRunners)
                           : nullptr;  // R2
  WaitHint hint = HintFor(self);
  if (task != nullptr) hint.now = now;
  hint.shed = next.shed;
  hint.more_ready = true;  // what fibers post leaves at the end of the batch
  self.held = true;
  ++runs_;
  const bool wake_guard = GuardSleeps();  // G5 of stand_ins.cc
  mu_.Unlock();
  Rouse(heir);
  if (wake_guard) WakeGuard();
  bool begun = true;
  {
    const ScopedWait scope(hint);
    if (resume) {
      loop.RunReady();
    } else {
      begun = loop.Start(task, hint);
      // No memory for a stack: let it run on the thread's own, at the price of holding the others up.
      if (!begun) task->RunContained(hint);
    }
  }
  mu_.Lock();
  --runs_;
  if (self.hold != Hold::kNone) Release(self);
  self.live_fibers = loop.live();
  return true;
}

void Executor::WaitForFibers(Thread& self, bool serving) {
  FiberLoop& loop = *self.loop_owner;
  const bool more = loop.HasReady() || (serving && !loop.full() && reception_.order->ready() > 0);
  if (serving && kParts[self.role].receives && !reception_.leading) return LeadWithFibers(self, !more);
  if (self.signal->armed && self.signal->ready) Disarm(self);  // F1
  if (!more && loop.live() == 0) {
    if (serving) Park(kRunners, self);
    return;
  }
  const bool seated = serving && !more;
  if (seated) {  // F2
    seats_[kRunners].push_back(&self);
    self.seated = true;
  }
  const uint32_t ticket = self.parker.Ticket();
  const WaitHint hint = HintFor(self);
  mu_.Unlock();
  {
    const ScopedWait scope(hint);
    if (more) {
      loop.Poll();
    } else {
      self.last_began = TimePoint();
      self.waits.store(true, std::memory_order_relaxed);
      loop.Wait(self.parker, ticket, nullptr);
      self.waits.store(false, std::memory_order_relaxed);
    }
  }
  mu_.Lock();
  LeaveSeat(self, kRunners);
}

void Executor::LeadWithFibers(Thread& self, bool wait) {
  FiberLoop& loop = *self.loop_owner;
  ReceptionSignal& signal = *self.signal;
  Receiver& receiver = *reception_source_;
  reception_.leading = true;  // R1
  SpinBudget* const spin_here = spin();
  const uint32_t ticket = self.parker.Ticket();
  const WaitHint hint = HintFor(self);
  mu_.Unlock();
  TaskList ready;
  {
    const ScopedWait scope(hint);
    if (!signal.armed) Arm(self);
    if (wait && !signal.ready) {
      self.last_began = TimePoint();
      self.waits.store(true, std::memory_order_relaxed);
      loop.Wait(self.parker, ticket, spin_here);
      self.waits.store(false, std::memory_order_relaxed);
    } else {
      loop.Poll();
    }
    if (signal.ready) {
      receiver.Await(Deadline::At(TimePoint()), nullptr, &self.events);
      signal.ready = receiver.poller().more();
      receiver.Handle(self.events, &ready);
      self.events.clear();
    }
  }
  mu_.Lock();
  reception_.leading = false;
  self.now = Append(reception_, ready);
}

}  // namespace curtail
