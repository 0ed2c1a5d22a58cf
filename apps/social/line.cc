// SPDX-License-Identifier: Apache-2.0
#include "apps/social/line.h"

#include "curtail/base/strings.h"
#include "curtail/exec/wait.h"

namespace curtail::social {

Line::Turn Line::Enter(const Context& ctx) { return {*this, ctx}; }

size_t Line::waiting() const {
  const MutexLock lock(mu_);
  return waiting_.size();
}

bool Line::Queue(Turn& turn) {
  std::vector<Turn*> late;
  bool waits = false;
  {
    const MutexLock lock(mu_);
    if (taken_ < places_) {
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

void Line::Leave() {
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

void Line::RemoveLate(std::vector<Turn*>* late) {
  std::erase_if(waiting_, [late](Turn* one) {
    if (!one->IsLate()) return false;
    late->push_back(one);
    return true;
  });
}

bool Line::Turn::IsLate() {
  if (deadline_.Expired()) {
    status_ = absl::DeadlineExceededError("the deadline passed in the line");
  } else if (ctx_.cancelled()) {
    status_ = absl::CancelledError("the caller left the line");
  }
  return !status_.ok();
}

bool Line::Turn::await_ready() {
  const WaitHint& hint = CurrentWait();
  if (hint.waiting == Waiting::kAsync && hint.executor != nullptr) return false;
  if (!line_.Queue(*this)) return true;
  FlushBeforeWait();
  for (uint32_t ticket = called_.Ticket(); (ticket & kCalled) == 0; ticket = called_.Ticket()) {
    called_.Wait(ticket, Deadline::Infinite());  // sure to end: those before it give their places back
  }
  return true;
}

bool Line::Turn::await_suspend(std::coroutine_handle<> self) {
  Executor* const executor = CurrentWait().executor;
  coroutine_ = self;
  executor_ = executor;
  executor->AsyncBegun();
  if (line_.Queue(*this)) return true;
  executor->AsyncEnded();
  return false;
}

void Line::Turn::Call() {
  if (executor_ == nullptr) {
    called_.Notify(kCalled);
    return;
  }
  Executor* const executor = executor_;  // this may be gone once the response pool has it
  TaskList alone;
  alone.Push(this);
  executor->SubmitResponse(alone);
}

void Line::Turn::Run(const WaitHint&) {
  Executor* const executor = executor_;  // this may be gone once the coroutine goes on
  coroutine_.resume();
  executor->AsyncEnded();
}

absl::StatusOr<Line::Place> Line::Turn::await_resume() {
  if (!status_.ok()) return std::move(status_);
  return Place(line_);
}

}  // namespace curtail::social
