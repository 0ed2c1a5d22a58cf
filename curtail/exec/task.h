// SPDX-License-Identifier: Apache-2.0
//
// task.h - a request that is ready to run, and a list of them that allocates nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "curtail/base/boundary.h"
#include "curtail/base/clock.h"
#include "curtail/exec/priority.h"
#include "curtail/exec/wait.h"

namespace curtail {

// A TaskKind is what tasks of one origin have in common, such as the method that they call. It
// outlives them. Thread-safe.
class TaskKind {
 public:
  // Immutable once there are tasks. The name is for people.
  std::string_view name = "tasks of one kind";

  // True if such tasks sleep outside of curtail's waits: under "auto" each has a thread of its own.
  bool blocks() const { return blocks_.load(std::memory_order_relaxed); }
  // The path class of such tasks, for an order that fences them (curtail/fence); 0: they call no
  // other service.
  uint8_t path_class() const { return path_class_.load(std::memory_order_relaxed); }
  void set_path_class(uint8_t path_class) { path_class_.store(path_class, std::memory_order_relaxed); }
  // Tasks that held up a thread which others needed.
  uint64_t held_up() const { return held_up_.load(std::memory_order_relaxed); }

  // A task held its thread up. `asleep`: it used no CPU, so that such tasks now block. True if they
  // did not before, for the first time or a power of two of times: so often an operator is told.
  bool HeldUp(bool asleep);
  // A task that ran for a while and did not suspend its fiber has ended; `asleep` if its thread
  // slept meanwhile. True as HeldUp().
  bool Ran(bool asleep);

 private:
  // Consecutive runs of the other sort after which blocks_ changes.
  static constexpr uint32_t kRunsToBlock = 4;
  static constexpr uint32_t kRunsToClear = 64;

  // They block from now on. True as HeldUp().
  bool BeginsToBlock();

  // Atomic, relaxed: hints. Threads that count at once may lose a run.
  std::atomic<bool> blocks_{false};
  std::atomic<uint8_t> path_class_{0};
  std::atomic<uint64_t> held_up_{0};
  std::atomic<uint32_t> contrary_{0};  // runs in a row that blocks_ did not foresee
  std::atomic<uint32_t> began_{0};     // times that they began to block
};

// Why an order gave a task up.
enum class ShedReason : uint8_t {
  kFull,           // its queue was full
  kOverdue,        // it waited too long in a queue that stood (codel.h)
  kLessImportant,  // the server admits only more important ones (priority_limit.h)
};

// A Task runs once, on a thread of the executor. It belongs to the code that queued it until Run()
// begins.
class Task {
 public:
  // `hint` says how this thread waits. Must not throw.
  virtual void Run(const WaitHint& hint) = 0;
  // Run() within a boundary: if it throws all the same, only its own request is lost.
  void RunContained(const WaitHint& hint) {
    Contain("a task", [&] { Run(hint); });
  }
  // The pools have stopped, and the task will not run. Must not throw.
  virtual void Drop() {}
  // The task's name, for diagnostics.
  virtual std::string_view name() const { return "a task"; }
  // Its share in a kind; null: it is of none.
  virtual TaskKind* kind() { return nullptr; }

  // How important it is, for an order that refuses by that.
  virtual Priority priority() const { return {}; }

  // True if its run would do nothing but give its place back. A hint.
  virtual bool abandoned() const { return false; }

  // When the executor queued it.
  TimePoint queued_at() const { return queued_at_; }
  // Whose it is, such as the number of its connection: an order may let flows take turns. Set
  // before it is queued.
  uint32_t flow() const { return flow_; }
  void set_flow(uint32_t flow) { flow_ = flow; }
  // A mark of the order, such as the permit that it gave the task. Run() may read it.
  uint8_t order_note() const { return order_note_; }
  void set_order_note(uint8_t note) { order_note_ = note; }
  // Set by an order that gives it up (rule O4 of order.h).
  ShedReason shed_reason() const { return shed_reason_; }
  void set_shed_reason(ShedReason reason) { shed_reason_ = reason; }

 protected:
  ~Task() = default;

 private:
  friend class TaskList;
  friend class WaitingTasks;
  Task* next_ = nullptr;
  Task* prev_ = nullptr;  // towards the oldest; of a WaitingTasks only
  TimePoint queued_at_;
  uint32_t flow_ = 0;
  uint8_t order_note_ = 0;
  ShedReason shed_reason_ = ShedReason::kFull;
};

// A TaskList is a singly linked queue of tasks, threaded through the tasks themselves.
// Thread-compatible.
class TaskList {
 public:
  TaskList() = default;
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;

  bool empty() const { return head_ == nullptr; }
  size_t size() const { return size_; }

  void Push(Task* task) {
    task->next_ = nullptr;
    (tail_ ? tail_->next_ : head_) = task;
    tail_ = task;
    ++size_;
  }
  // The oldest task, or null. It stays.
  Task* front() const { return head_; }
  // Takes the oldest task, or null.
  Task* Pop() {
    Task* task = head_;
    if (task == nullptr) return nullptr;
    head_ = task->next_;
    if (head_ == nullptr) tail_ = nullptr;
    --size_;
    return task;
  }
  // Notes that all of them were queued at `now`.
  void Stamp(TimePoint now) {
    for (Task* task = head_; task != nullptr; task = task->next_) task->queued_at_ = now;
  }
  // Moves all of `other` to the end of this list.
  void Append(TaskList& other) {
    if (other.empty()) return;
    (tail_ ? tail_->next_ : head_) = other.head_;
    tail_ = other.tail_;
    size_ += other.size_;
    other.head_ = other.tail_ = nullptr;
    other.size_ = 0;
  }

 private:
  Task* head_ = nullptr;
  Task* tail_ = nullptr;
  size_t size_ = 0;
};

}  // namespace curtail
