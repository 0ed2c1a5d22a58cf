// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/fair_order.h"

#include <array>

namespace curtail {
namespace {

class FairOrder final : public Order {
 public:
  void Append(TaskList& tasks) override {
    ready_ += tasks.size();
    while (Task* const task = tasks.Pop()) {
      Queue& queue = queues_[task->flow() % kQueues];
      const bool had_tasks = !queue.tasks.empty();
      queue.tasks.Push(task);
      if (!had_tasks) TakeTurn(queue);
    }
  }
  Next Pop(TimePoint) override {
    --ready_;
    return {.task = PopTask()};
  }
  void TakeAll(TaskList* left_over) override {
    while (first_ != nullptr) left_over->Push(PopTask());
    ready_ = 0;
  }
  size_t size() const override { return ready_; }

 private:
  // Flows that share a queue share its turns.
  static constexpr uint32_t kQueues = 128;

  struct Queue {
    TaskList tasks;
    Queue* next = nullptr;  // whose turn is after this one's
  };

  // `queue` has its next turn after all others.
  void TakeTurn(Queue& queue) {
    queue.next = nullptr;
    (first_ != nullptr ? last_->next : first_) = &queue;
    last_ = &queue;
  }
  // REQUIRES: a queue has tasks.
  Task* PopTask() {
    Queue& queue = *first_;
    Task* const task = queue.tasks.Pop();
    first_ = queue.next;
    if (!queue.tasks.empty()) TakeTurn(queue);
    return task;
  }

  std::array<Queue, kQueues> queues_;
  // The queues that have tasks, in the order of their turns.
  Queue* first_ = nullptr;
  Queue* last_ = nullptr;
};

}  // namespace

std::unique_ptr<Order> MakeFairOrder() { return std::make_unique<FairOrder>(); }

}  // namespace curtail
