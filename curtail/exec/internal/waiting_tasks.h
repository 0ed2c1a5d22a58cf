// SPDX-License-Identifier: Apache-2.0
//
// waiting_tasks.h - a queue of tasks, and what it does while it stands (queue_options.h).
//
// Thread safety: none of its own. The executor's mutex guards every call.
#pragma once

#include <cstddef>

#include "curtail/exec/codel.h"
#include "curtail/exec/queue_options.h"
#include "curtail/exec/task.h"

namespace curtail {

// A WaitingTasks is one queue of an order. All steps take constant time.
class WaitingTasks {
 public:
  WaitingTasks() = default;
  explicit WaitingTasks(const QueueOptions& options) { SetOptions(options); }
  WaitingTasks(const WaitingTasks&) = delete;
  WaitingTasks& operator=(const WaitingTasks&) = delete;

  // Before the first task.
  void SetOptions(const QueueOptions& options) {
    sheds_ = options.shed == ShedMode::kCodel;
    lifo_ = options.mode == QueueMode::kLifo;
    codel_ = Codel(options.target, options.interval);
  }

  bool empty() const { return oldest_ == nullptr; }
  size_t size() const { return size_; }
  // Null: there is none.
  Task* oldest() const { return oldest_; }

  void Push(Task* task) {
    task->next_ = nullptr;
    task->prev_ = newest_;
    (newest_ != nullptr ? newest_->next_ : oldest_) = task;
    newest_ = task;
    ++size_;
  }
  // Looks at the queue at `now`. Takes the oldest task if it is overdue, and says so
  // (Task::shed_reason); else returns null.
  Task* TakeOverdue(TimePoint now) {
    if ((!sheds_ && !lifo_) || empty()) return nullptr;
    const Nanos waited = now - oldest_->queued_at();
    codel_.Look(waited, now);
    if (!sheds_ || !codel_.Overdue(waited)) return nullptr;
    oldest_->set_shed_reason(ShedReason::kOverdue);
    return TakeOldest();
  }
  // Takes the task whose turn it is. REQUIRES: there is one.
  Task* Take() {
    Task* const task = lifo_ && codel_.stands() ? newest_ : oldest_;
    Remove(task);
    if (empty()) codel_.Emptied();
    return task;
  }
  // REQUIRES: there is one.
  Task* TakeOldest() {
    Task* const task = oldest_;
    oldest_ = task->next_;
    (oldest_ != nullptr ? oldest_->prev_ : newest_) = nullptr;
    --size_;
    return task;
  }
  // Moves all to the end of `list`, the oldest first.
  void MoveTo(TaskList* list) {
    while (!empty()) list->Push(TakeOldest());
  }

 private:
  void Remove(Task* task) {
    (task->prev_ != nullptr ? task->prev_->next_ : oldest_) = task->next_;
    (task->next_ != nullptr ? task->next_->prev_ : newest_) = task->prev_;
    --size_;
  }

  // Immutable once there are tasks.
  bool sheds_ = false;
  bool lifo_ = false;

  Codel codel_{Nanos::max(), Nanos::max()};
  Task* oldest_ = nullptr;
  Task* newest_ = nullptr;
  size_t size_ = 0;
};

}  // namespace curtail
