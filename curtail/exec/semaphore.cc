// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/semaphore.h"

#include "curtail/base/strings.h"
#include "curtail/exec/wait.h"

namespace curtail {

size_t Semaphore::waiting() const {
  const MutexLock lock(mu_);
  return waiting_.size();
}

bool Semaphore::Queue(Turn& turn) {
  std::vector<Turn*> late;
  bool waits = false;
  {
    const MutexLock lock(mu_);
    if (taken_ < permits_) {
      ++taken_;
      return false;
    }
    if (waiting_.size() >= most_waiting_) RemoveLate(&late);
    waits = waiting_.size() < most_waiting_;
    if (waits) {
      waiting_.push_back(&turn);
    } else {
      turn.status_ =
          absl::ResourceExhaustedError(Join("too many at once: ", most_waiting_, " wait already; try again"));
    }
  }
  for (Turn* one : late) one->Call();
  return waits;
}

void Semaphore::Release() {
  std::vector<Turn*> called;
  {
    const MutexLock lock(mu_);
    RemoveLate(&called);
    if (waiting_.empty()) {
      --taken_;
    } else {
      called.push_back(waiting_.front());
      waiting_.pop_front();
    }
  }
  for (Turn* one : called) one->Call();
}

void Semaphore::RemoveLate(std::vector<Turn*>* late) {
  std::erase_if(waiting_, [late](Turn* one) {
    if (!one->IsLate()) return false;
    late->push_back(one);
    return true;
  });
}

bool Semaphore::Turn::IsLate() {
  if (deadline_.Expired()) {
    status_ = absl::DeadlineExceededError("the deadline passed in line");
  } else if (cancelled_(request_)) {
    status_ = absl::CancelledError("the caller cancelled in line");
  }
  return !status_.ok();
}

bool Semaphore::Turn::await_ready() {
  const WaitHint& hint = CurrentWait();
  if (hint.waiting == Waiting::kAsync && hint.executor != nullptr) return false;
  if (!semaphore_.Queue(*this)) return true;
  FlushBeforeWait();
  for (uint32_t ticket = called_.Ticket(); (ticket & kCalled) == 0; ticket = called_.Ticket()) {
    called_.Wait(ticket, Deadline::Infinite());  // sure to end: those before it give their permits back
  }
  return true;
}

bool Semaphore::Turn::await_suspend(std::coroutine_handle<> self) {
  Executor* const executor = CurrentWait().executor;
  coroutine_ = self;
  executor_ = executor;
  executor->AsyncBegun();
  if (semaphore_.Queue(*this)) return true;
  executor->AsyncEnded();
  return false;
}

void Semaphore::Turn::Call() {
  if (executor_ == nullptr) {
    called_.Notify(kCalled);
    return;
  }
  Executor* const executor = executor_;  // this may be gone once the response pool has it
  TaskList alone;
  alone.Push(this);
  executor->SubmitResponse(alone);
}

void Semaphore::Turn::Run(const WaitHint&) {
  Executor* const executor = executor_;  // this may be gone once the coroutine goes on
  coroutine_.resume();
  executor->AsyncEnded();
}

absl::StatusOr<Semaphore::Permit> Semaphore::Turn::await_resume() {
  if (!status_.ok()) return std::move(status_);
  return Permit(semaphore_);
}

}  // namespace curtail
