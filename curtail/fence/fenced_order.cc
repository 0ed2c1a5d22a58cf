// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Each class has two lists: tasks that wait for a permit, and tasks that have one. Masks of 64 bits name the
// classes whose lists are not empty, so that an empty class costs nothing. A task passes through with two list
// operations, a virtual call for its class and two relaxed counters; the committed permits of kBorrow are summed only
// when a class uses more than half its share.
//
// Permits are given at Append() and not at Pop(), because the executor wakes threads by ready(), which has to be exact.
// A task with a permit waits for a thread only while all threads are busy with local tasks, or have not come back from
// what they ended.
#include "curtail/fence/fenced_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "curtail/fence/shares.h"

namespace curtail {
namespace {

constexpr uint64_t BitOf(uint8_t path_class) { return uint64_t{1} << path_class; }

// The class of `classes` whose turn it is after `last`. REQUIRES: there is one.
uint8_t NextAfter(uint64_t classes, uint8_t last) {
  const uint64_t later = last + 1 < 64 ? classes & (~uint64_t{0} << (last + 1)) : 0;
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

class FencedOrder final : public Order {
 public:
  explicit FencedOrder(Fence* fence) : fence_(*fence), shares_(fence) {}

  void SetThreads(uint32_t threads) override { shares_.SetThreads(threads); }

  void Append(TaskList& tasks) override {
    shares_.Refresh();  // F8
    if (held_ != 0) GiveToHeld();
    while (Task* task = tasks.Pop()) Sort(task);
    if (held_ != announced_) Announce();
  }

  Next Pop(TimePoint) override {
    --ready_;
    const bool others = granted_ != 0;
    const bool first = !local_.empty() || !refused_.empty();
    if (first && (!others || local_in_a_row_ < kLocalInARow)) {  // F7
      local_in_a_row_ = others ? local_in_a_row_ + 1 : 0;
      return PopFirst();
    }
    local_in_a_row_ = 0;
    last_served_ = NextAfter(granted_, last_served_);
    TaskList& tasks = classes_[last_served_].granted;
    Task* const task = tasks.Pop();
    if (tasks.empty()) granted_ &= ~BitOf(last_served_);
    return {.task = task};
  }

  void TakeAll(TaskList* left_over) override {
    left_over->Append(refused_);
    left_over->Append(local_);
    for (Class& c : classes_) {
      left_over->Append(c.granted);
      left_over->Append(c.held);
    }
    ready_ = 0;
    granted_ = held_ = announced_ = 0;
    held_count_ = 0;
    fence_.held_.store(0, std::memory_order_seq_cst);  // the pools have stopped
  }

  size_t size() const override { return ready_ + held_count_; }

 private:
  struct Class {
    TaskList held;     // without a permit
    TaskList granted;  // with one
  };

  void Sort(Task* task) {
    const uint8_t path_class = ClassOf(*task);
    task->set_order_note(path_class);
    if (path_class == Fence::kLocal) {
      Fence::Count(fence_.states_[path_class].begun);
      local_.Push(task);
      ++ready_;
      return;
    }
    Class& c = classes_[path_class];
    if (c.held.empty() && (shares_.HasOwn(path_class) || (held_ == 0 && shares_.HasIdle()))) {
      return Grant(task, path_class);
    }
    while (c.held.size() >= fence_.options().max_waiting && DropAbandoned(path_class)) {
    }
    if (c.held.size() >= fence_.options().max_waiting) return Refuse(task, path_class);
    Fence::Count(fence_.states_[path_class].queued);
    c.held.Push(task);
    ++held_count_;
    held_ |= BitOf(path_class);
    NoteHeld(path_class);
  }

  void Grant(Task* task, uint8_t path_class) {
    Fence::State& state = fence_.states_[path_class];
    if (shares_.Borrows(path_class)) Fence::Count(state.borrowed);
    Fence::Count(state.begun);
    classes_[path_class].granted.Push(task);
    granted_ |= BitOf(path_class);
    ++ready_;
  }

  void Refuse(Task* task, uint8_t path_class) {  // F6
    Fence::State& state = fence_.states_[path_class];
    Fence::Count(state.refused);
    const Task* const head = classes_[path_class].held.front();
    const uint32_t retry_after_ms = head == nullptr ? 1 : MillisBetween(head->queued_at(), task->queued_at());
    state.retry_after_ms.store(retry_after_ms, std::memory_order_relaxed);
    refused_.Push(task);
    ++ready_;
  }

  // F9: takes the first held task of the class if it was abandoned.
  bool DropAbandoned(uint8_t path_class) {
    const Task* const head = classes_[path_class].held.front();
    if (head == nullptr || !head->abandoned()) return false;
    refused_.Push(TakeHeld(path_class));
    ++ready_;
    return true;
  }

  Task* TakeHeld(uint8_t path_class) {
    TaskList& held = classes_[path_class].held;
    Task* const task = held.Pop();
    --held_count_;
    if (held.empty()) held_ &= ~BitOf(path_class);
    NoteHeld(path_class);
    return task;
  }

  void NoteHeld(uint8_t path_class) {
    const auto waiting = static_cast<uint32_t>(classes_[path_class].held.size());
    fence_.states_[path_class].waiting.store(waiting, std::memory_order_relaxed);
  }

  // Gives permits to tasks that are held back, as far as F3 allows.
  void GiveToHeld() {
    const uint64_t all = held_;
    for (uint64_t left = all; left != 0;) {
      const uint8_t path_class = last_claimer_ = NextAfter(left, last_claimer_);
      left &= ~BitOf(path_class);
      while (DropAbandoned(path_class)) {
      }
      while ((held_ & BitOf(path_class)) != 0 && shares_.HasOwn(path_class)) GrantHeld(path_class);
    }
    while (held_ != 0 && shares_.HasIdle()) {
      last_borrower_ = NextAfter(held_, last_borrower_);
      GrantHeld(last_borrower_);
    }
  }

  void GrantHeld(uint8_t path_class) {
    Grant(TakeHeld(path_class), path_class);
    while (DropAbandoned(path_class)) {
    }
  }

  // F5: names the classes that hold tasks back, then looks at the permits again.
  void Announce() {
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
    return {.task = (refusal ? refused_ : local_).Pop(), .shed = refusal};
  }

  Fence& fence_;
  FenceShares shares_;
  std::array<Class, Fence::kMaxClasses> classes_;
  TaskList local_;
  TaskList refused_;  // and abandoned ones
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
  explicit DryRunOrder(Fence* fence) : fence_(*fence), shares_(fence) {}

  void SetThreads(uint32_t threads) override { shares_.SetThreads(threads); }
  void Append(TaskList& tasks) override {
    shares_.Refresh();
    while (Task* task = tasks.Pop()) {
      Judge(task);
      tasks_.Push(task);
    }
    ready_ = tasks_.size();
  }
  Next Pop(TimePoint) override {
    --ready_;
    return {.task = tasks_.Pop()};
  }
  void TakeAll(TaskList* left_over) override {
    left_over->Append(tasks_);
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
  TaskList tasks_;
};

std::unique_ptr<Order> MakeFencedOrder(Fence* fence) {
  if (fence->options().mode == FenceMode::kDryRun) return std::make_unique<DryRunOrder>(fence);
  return std::make_unique<FencedOrder>(fence);
}

}  // namespace curtail
