// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. What a user asks of a stream is a step: a read, a write, a wait for the head or for the end. Try() carries a
// step out, or finds that it has to wait. A thread or a fiber then sleeps and tries again. A coroutine leaves its step
// behind, and a thread of the response pool tries again and resumes it:
//
//  W1  A step that waits lies in a Place: `waiter` of a thread, or `step` of a coroutine. It enters under the mutex,
//      after a Try() under the same hold of it. So no change is missed.
//  W2  Who changes what a step may wait for calls Wake() under the mutex. For a coroutine that queues the Place, once
//      (`queued`), as a task of the response pool. It resumes nothing: a coroutine never runs under a mutex, or within
//      an event of a connection.
//  W3  GoOn(), the task, tries the step. If it can still not be carried out, it stays in its Place. Else the step
//      leaves the Place, the mutex is given up, and the coroutine is resumed, as the last touch of this object.
//  W4  A coroutine may be resumed before Await() has returned. So Await() touches nothing after it gave up the mutex
//      with the step in its Place. The resumed thread takes the mutex first: the object outlives that hold of it.
//  W5  The deadline of the context is a timer of the response receiver. It is armed when steps begin to suspend, and
//      again when a step finds that the deadline has come nearer. It wakes both places; GoOn() cuts the stream off.
//      A cancellation comes by Wake() likewise. StopSuspending() waits for a timer that fires.
//  W6  From Suspend() to StopSuspending() the stream counts as begun in the executor: a thread takes its tasks whatever
//      the config is by then, and Stop() waits for them.
//  W7  A coroutine that has run for kTurn goes on behind the others: its step is queued by RunLater(), after the next
//      look at the sockets. Each kWakesALook-th wake goes there, too, so that two coroutines of one process that wake
//      each other do not keep the pool from its sockets.
//  W8  Locks are taken in this order: the context's or that of the receiver's timers; the stream's; the executor's or
//      that of RunLater().
#include "curtail/rpc/stream/stream_end.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "curtail/exec/executor.h"
#include "curtail/exec/fiber.h"
#include "curtail/rpc/call/outcome.h"

namespace curtail::internal {
namespace {

constexpr Nanos kTurn = std::chrono::microseconds(100);
constexpr uint32_t kStepsALook = 8;  // at the clock
constexpr uint32_t kWakesALook = 64;

thread_local TimePoint turn_began;
thread_local uint32_t steps = 0;

// W7
bool TurnIsOver() { return ++steps % kStepsALook == 0 && Now() - turn_began > kTurn; }

}  // namespace

void StreamEnd::BeginTurn() {
  turn_began = Now();
  steps = 0;
}

bool StreamEnd::Do(StreamStep step) {
  Fiber::YieldIfLong();
  {
    MutexLock lock(mu_);
    const Deadline until = step.kind == StreamStep::Kind::kGone ? Deadline::Infinite() : deadline();
    while (!TryOrCut(step)) Sleep(PlaceOf(step), until);
  }
  Settle(step);
  return step.ok;
}

bool StreamEnd::Await(StreamStep& step) {
  if (!suspends()) {
    step.ok = Do(step);
    return false;
  }
  const bool yields = TurnIsOver();
  Arm();
  {
    MutexLock lock(mu_);
    if (yields || !TryOrCut(step)) {  // W1
      Place& place = PlaceOf(step);
      place.step = &step;
      if (yields) {
        place.queued = true;
        receiver_->RunLater(place);
      }
      return true;  // W4
    }
  }
  Settle(step);
  return false;
}

void StreamEnd::GoOn(Place& place) {  // W3
  StreamStep* step = nullptr;
  {
    MutexLock lock(mu_);
    const bool done = TryOrCut(*place.step);
    place.queued = false;  // only now: the try itself may wake the place
    if (!done) return;
    step = std::exchange(place.step, nullptr);
  }
  Settle(*step);
  BeginTurn();
  step->coroutine.resume();
}

void StreamEnd::Wake(Place& place) {  // W2
  if (place.waiter != nullptr) return place.waiter->Notify(Waiter::kInterrupted);
  if (place.step == nullptr || std::exchange(place.queued, true)) return;
  if (++wakes_ % kWakesALook == 0) return receiver_->RunLater(place);  // W7
  if (TaskList* const batch = receiver_->Batch()) return batch->Push(&place);
  TaskList alone;
  alone.Push(&place);
  executor_->SubmitResponse(alone);
}

bool StreamEnd::TryOrCut(StreamStep& step) {
  if (Try(step)) return true;
  if (step.kind == StreamStep::Kind::kGone) return false;
  if (ctx_.cancelled()) {
    CutOff(CancelledByCaller());
  } else if (deadline().Expired()) {
    CutOff(DeadlinePassed("on a stream"));
  } else {
    return false;
  }
  return Try(step);
}

void StreamEnd::Sleep(Place& place, Deadline deadline) {
  Waiter waiter(lane_);
  place.waiter = &waiter;
  mu_.Unlock();
  BeforeSleep();
  FlushBeforeWait();
  WaitFor(waiter, deadline);
  mu_.Lock();
  place.waiter = nullptr;
}

void StreamEnd::Fail(absl::Status status) {
  MutexLock lock(mu_);
  CutOff(std::move(status));
}

absl::Status StreamEnd::status() {
  MutexLock lock(mu_);
  return why_;
}

void StreamEnd::CutOff(absl::Status why) {
  if (cut_) return;
  cut_ = true;
  why_ = std::move(why);
  WakeAll();
}

void StreamEnd::Suspend(const WaitHint& hint) {
  executor_ = hint.executor;
  receiver_ = static_cast<ResponseReceiver*>(hint.response);
  executor_->AsyncBegun();  // W6
  if (deadline().infinite()) {
    if (const Deadline look = Look(); !look.infinite()) receiver_->Arm(*this, look.when());
  } else {
    Arm();
  }
}

void StreamEnd::StopSuspending() {
  if (executor_ == nullptr) return;
  receiver_->Disarm(*this);
  std::exchange(executor_, nullptr)->AsyncEnded();
}

void StreamEnd::Arm() {  // W5
  if (armed_ <= deadline()) return;
  armed_ = deadline();
  {
    MutexLock lock(mu_);
    until_ = armed_;
  }
  receiver_->Disarm(*this);
  receiver_->Arm(*this, std::min(armed_, Look()).when());
}

Deadline StreamEnd::OnTimer() {
  const Deadline look = Look();
  MutexLock lock(mu_);
  if (!until_.Expired()) return std::min(until_, look);
  WakeAll();
  return look;
}

}  // namespace curtail::internal
