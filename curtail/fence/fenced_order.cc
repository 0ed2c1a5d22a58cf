// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Each class has two queues: tasks that wait for a permit, and tasks that have one. Masks of 64 bits name the
// classes whose queues are not empty, so that an empty class costs nothing. A task passes through with two queue
// operations, a virtual call for its class and one relaxed counter. What happens only to tasks that wait is kept out of
// line. Permits are a parameter (shares.h, lending.h), so that no task pays for the choice.
//
// Permits are given at Append() and not at Pop(), because the executor wakes threads by ready(), which has to be exact.
// A task with a permit waits for a thread only while all threads are busy with local tasks, or have not come back from
// what they ended.
#include "curtail/fence/fenced_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>

#include "curtail/exec/internal/fifo_order.h"
#include "curtail/exec/internal/waiting_tasks.h"
#include "curtail/fence/lending.h"
#include "curtail/fence/shares.h"

namespace curtail {
namespace {

// The class of `classes` whose turn it is after `last`. REQUIRES: there is one.
uint8_t NextAfter(uint64_t classes, uint8_t last) {
  const uint64_t later = classes & (~uint64_t{1} << last);
  return static_cast<uint8_t>(std::countr_zero(later != 0 ? later : classes));
}

uint8_t ClassOf(Task& task) {  // F1
  const TaskKind* const kind = task.kind();
  if (kind == nullptr) return Fence::kLocal;
  const uint8_t path_class = kind->path_class();
  return path_class < Fence::kMaxClasses ? path_class : Fence::kOther;
}

uint32_t MillisBetween(TimePoint from, TimePoint to) {
  constexpr int64_t kMost = 10'000;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(to - from).count();
  return static_cast<uint32_t>(std::clamp<int64_t>(ms, 1, kMost));
}

}  // namespace

template <class Permits>
class FencedOrder final : public Order {
 public:
  FencedOrder(Fence* fence, const QueueOptions& queue)
      : fence_(*fence), looks_(queue.any()), permits_(fence), local_(queue) {
    for (Class& c : classes_) c.held.SetOptions(queue), c.granted.SetOptions(queue);
  }

  uint32_t Beside(uint32_t threads) const override { return Permits::Beside(threads); }
  void SetThreads(uint32_t threads) override { permits_.SetThreads(threads); }

  void Append(TaskList& tasks) override {
    permits_.Refresh();  // F8
    if (tasks.size() != 1 || ready_ != 0 || held_ != 0 || looks_) return AppendAll(tasks);
    Task* const task = tasks.Pop();
    now_ = std::max(now_, task->queued_at());
    const uint8_t path_class = Classify(task);
    if (path_class == Fence::kLocal || !permits_.Take(path_class, now_)) return AppendOne(task, path_class);
    CountBegun(path_class);
    lone_ = task;
    ready_ = 1;
  }

  Next Pop(TimePoint now) override {
    now_ = now;
    --ready_;
    if (lone_ != nullptr) {
      last_served_ = lone_->order_note();
      local_in_a_row_ = 0;
      return {.task = std::exchange(lone_, nullptr)};
    }
    const bool others = granted_ != 0;
    const bool first = !local_.empty() || !refused_.empty();
    if (first && (!others || local_in_a_row_ < kLocalInARow)) {  // F7
      local_in_a_row_ = others ? local_in_a_row_ + 1 : 0;
      return PopFirst();
    }
    local_in_a_row_ = 0;
    last_served_ = NextAfter(granted_, last_served_);
    return PopGranted(last_served_);
  }

  void TakeAll(TaskList* left_over) override {
    if (lone_ != nullptr) left_over->Push(std::exchange(lone_, nullptr));
    left_over->Append(refused_);
    local_.MoveTo(left_over);
    for (Class& c : classes_) {
      c.granted.MoveTo(left_over);
      c.held.MoveTo(left_over);
    }
    ready_ = 0;
    granted_ = held_ = announced_ = 0;
    held_count_ = 0;
    fence_.held_.store(0, std::memory_order_seq_cst);  // the pools have stopped
  }

  size_t size() const override { return ready_ + held_count_; }

 private:
  struct Class {
    WaitingTasks held;     // without a permit
    WaitingTasks granted;  // with one
  };

  [[gnu::noinline]] void AppendAll(TaskList& tasks) {
    if (lone_ != nullptr) Queue(lone_, lone_->order_note()), lone_ = nullptr;
    if (!tasks.empty()) now_ = std::max(now_, tasks.front()->queued_at());
    if (held_ != 0) GiveToHeld();
    while (Task* task = tasks.Pop()) Sort(task, Classify(task));
    if (held_ != announced_) Announce();
  }

  [[gnu::noinline]] void AppendOne(Task* task, uint8_t path_class) {
    Sort(task, path_class);
    if (held_ != announced_) Announce();
  }

  static uint8_t Classify(Task* task) {
    const uint8_t path_class = ClassOf(*task);
    task->set_order_note(path_class);
    return path_class;
  }

  void Sort(Task* task, uint8_t path_class) {
    if (path_class == Fence::kLocal) {
      Fence::Count(fence_.states_[path_class].begun);
      local_.Push(task);
      ++ready_;
      return;
    }
    if (classes_[path_class].held.empty() && permits_.Take(path_class, now_)) [[likely]]
      return Grant(task, path_class);
    Hold(task, path_class);
  }

  // A task whose class has no permit for it.
  [[gnu::noinline]] void Hold(Task* task, uint8_t path_class) {
    Class& c = classes_[path_class];
    while (c.held.size() >= fence_.options().max_waiting && DropAbandoned(path_class)) {
    }
    if (IsFull(c.held)) return Refuse(task, path_class);
    Fence::Count(fence_.states_[path_class].queued);
    c.held.Push(task);
    ++held_count_;
    held_ |= Fence::Bit(path_class);
    NoteHeld(path_class);
  }

  bool IsFull(const WaitingTasks& held) const {  // F6
    if (held.size() < fence_.options().max_waiting) return false;
    return !Permits::kLends || held.empty() || now_ - held.oldest()->queued_at() >= FenceLending::kStands;
  }

  void Grant(Task* task, uint8_t path_class) {
    CountBegun(path_class);
    Queue(task, path_class);
    ++ready_;
  }

  void CountBegun(uint8_t path_class) {
    Fence::State& state = fence_.states_[path_class];
    Fence::Count(state.begun);
    if (fence_.meter() != nullptr) fence_.meter()->Come(path_class, now_);
  }

  // A task with a permit.
  void Queue(Task* task, uint8_t path_class) {
    classes_[path_class].granted.Push(task);
    granted_ |= Fence::Bit(path_class);
  }

  void Refuse(Task* task, uint8_t path_class) {  // F6
    Fence::State& state = fence_.states_[path_class];
    Fence::Count(state.refused);
    const Task* const head = classes_[path_class].held.oldest();
    const uint32_t retry_after_ms = head == nullptr ? 1 : MillisBetween(head->queued_at(), task->queued_at());
    state.retry_after_ms.store(retry_after_ms, std::memory_order_relaxed);
    task->set_shed_reason(ShedReason::kFull);
    refused_.Push(task);
    ++ready_;
  }

  // F9: takes the first held task of the class if it was abandoned.
  bool DropAbandoned(uint8_t path_class) {
    WaitingTasks& held = classes_[path_class].held;
    if (held.empty() || !held.oldest()->abandoned()) return false;
    refused_.Push(held.TakeOldest());
    ++ready_;
    NoteTaken(path_class);
    return true;
  }

  void DropOverdue(uint8_t path_class) {  // F10
    while (Task* const task = classes_[path_class].held.TakeOverdue(now_)) {
      Fence::Count(fence_.states_[path_class].shed);
      refused_.Push(task);
      ++ready_;
      NoteTaken(path_class);
    }
  }

  // A held task of the class was taken.
  void NoteTaken(uint8_t path_class) {
    --held_count_;
    if (classes_[path_class].held.empty()) held_ &= ~Fence::Bit(path_class);
    NoteHeld(path_class);
  }

  void NoteHeld(uint8_t path_class) {
    const auto waiting = static_cast<uint32_t>(classes_[path_class].held.size());
    fence_.states_[path_class].waiting.store(waiting, std::memory_order_relaxed);
    permits_.Waits(path_class, waiting);
  }

  // Gives permits to tasks that are held back, as far as F3 allows.
  [[gnu::noinline]] void GiveToHeld() {
    const uint64_t all = held_;
    for (uint64_t left = all; left != 0;) {
      const uint8_t path_class = last_claimer_ = NextAfter(left, last_claimer_);
      left &= ~Fence::Bit(path_class);
      while (DropAbandoned(path_class)) {
      }
      DropOverdue(path_class);
      while ((held_ & Fence::Bit(path_class)) != 0 && permits_.TakeOwn(path_class, now_))
        Grant(TakeHeld(path_class), path_class);
    }
    if (Permits::kLends && held_ != 0) Lend();
  }

  // Gives permits beyond reserves, to one class after the other.
  void Lend() {
    for (uint64_t left = held_; left != 0;) {
      const uint8_t path_class = NextAfter(left, last_borrower_);
      if (!permits_.Take(path_class, now_)) {
        left &= ~Fence::Bit(path_class);
        continue;
      }
      last_borrower_ = path_class;
      Grant(TakeHeld(path_class), path_class);
      left &= held_;
    }
  }

  Task* TakeHeld(uint8_t path_class) {
    Task* const task = classes_[path_class].held.Take();
    NoteTaken(path_class);
    while (DropAbandoned(path_class)) {
    }
    return task;
  }

  // F5: names the classes that hold tasks back, then looks at the permits again.
  [[gnu::noinline]] void Announce() {
    const bool more = (held_ & ~announced_) != 0;
    announced_ = held_;
    fence_.held_.store(held_, std::memory_order_seq_cst);  // pairs with Fence::End()
    if (!more) return;
    GiveToHeld();
    if (held_ == announced_) return;
    announced_ = held_;
    fence_.held_.store(held_, std::memory_order_seq_cst);
  }

  Next PopFirst() {
    const bool refusal = local_.empty() || (!refused_.empty() && !last_was_refusal_);
    last_was_refusal_ = refusal;
    if (refusal) return {.task = refused_.Pop(), .shed = true};
    if (looks_) [[unlikely]]
      return LookAt(local_, Fence::kLocal);
    return {.task = local_.TakeOldest()};
  }

  Next PopGranted(uint8_t path_class) {
    if (looks_) [[unlikely]]
      return LookAtGranted(path_class);
    WaitingTasks& tasks = classes_[path_class].granted;
    Task* const task = tasks.TakeOldest();
    if (tasks.empty()) granted_ &= ~Fence::Bit(path_class);
    return {.task = task};
  }

  [[gnu::noinline]] Next LookAtGranted(uint8_t path_class) {
    WaitingTasks& tasks = classes_[path_class].granted;
    const Next next = LookAt(tasks, path_class);
    if (tasks.empty()) granted_ &= ~Fence::Bit(path_class);
    return next;
  }

  // The next of a queue that sheds, or serves the newest first, while it stands.
  [[gnu::noinline]] Next LookAt(WaitingTasks& tasks, uint8_t path_class) {
    Task* const overdue = tasks.TakeOverdue(now_);
    if (overdue == nullptr) return {.task = tasks.Take()};
    Fence::Count(fence_.states_[path_class].shed);  // F10
    if (path_class != Fence::kLocal) overdue->set_order_note(path_class | Fence::kShedWithPermit);
    return {.task = overdue, .shed = true};
  }

  Fence& fence_;
  const bool looks_;  // QueueOptions::any()
  Permits permits_;
  std::array<Class, Fence::kMaxClasses> classes_;
  Task* lone_ = nullptr;  // has a permit, and is the only one that is ready: it needs no queue
  WaitingTasks local_;
  TaskList refused_;  // and abandoned and overdue ones
  TimePoint now_;     // the latest that Append() or Pop() heard of
  size_t held_count_ = 0;
  // Classes, as bits: of `held` tasks, as Fence::End() reads them, of `granted` tasks.
  uint64_t held_ = 0;
  uint64_t announced_ = 0;
  uint64_t granted_ = 0;
  // The turns.
  uint8_t last_served_ = 0;
  uint8_t last_claimer_ = 0;
  uint8_t last_borrower_ = 0;
  int local_in_a_row_ = 0;
  bool last_was_refusal_ = false;
};

// Counts at Append() what a strict order would have done. A request that it would have refused counts as one that
// waits, until it ends.
class DryRunOrder final : public Order {
 public:
  DryRunOrder(Fence* fence, const QueueOptions& queue)
      : fence_(*fence), shares_(fence), tasks_(MakeFifoOrder(queue)) {}

  void SetThreads(uint32_t threads) override { shares_.SetThreads(threads); }
  void Append(TaskList& tasks) override {
    shares_.Refresh();
    TaskList judged;
    while (Task* task = tasks.Pop()) {
      Judge(task);
      judged.Push(task);
    }
    tasks_->Append(judged);
    ready_ = tasks_->ready();
  }
  Next Pop(TimePoint now) override {
    Next next = tasks_->Pop(now);
    ready_ = tasks_->ready();
    if (next.shed) {
      const uint8_t path_class = next.task->order_note();
      Fence::Count(fence_.states_[path_class].shed);
      next.task->set_order_note(path_class | Fence::kShedWithPermit);
    }
    return next;
  }
  void TakeAll(TaskList* left_over) override {
    tasks_->TakeAll(left_over);
    ready_ = 0;
  }
  size_t size() const override { return ready_; }

 private:
  void Judge(Task* task) {
    const uint8_t path_class = ClassOf(*task);
    task->set_order_note(path_class);
    Fence::State& state = fence_.states_[path_class];
    if (path_class != Fence::kLocal) {
      const uint64_t in_use = fence_.InUse(path_class);
      const uint64_t share = shares_.share(path_class);
      if (in_use >= share)
        Fence::Count(in_use < share + fence_.options().max_waiting ? state.queued : state.refused);
    }
    Fence::Count(state.begun);
  }

  Fence& fence_;
  FenceShares shares_;
  const std::unique_ptr<Order> tasks_;
};

std::unique_ptr<Order> MakeFencedOrder(Fence* fence, const QueueOptions& queue) {
  switch (fence->options().mode) {
    case FenceMode::kDryRun:
      return std::make_unique<DryRunOrder>(fence, queue);
    case FenceMode::kOn:
      return std::make_unique<FencedOrder<FenceLending>>(fence, queue);
    default:
      return std::make_unique<FencedOrder<FenceShares>>(fence, queue);
  }
}

}  // namespace curtail
