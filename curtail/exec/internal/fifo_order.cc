// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/fifo_order.h"

#include "curtail/exec/internal/waiting_tasks.h"

namespace curtail {
namespace {

class FifoOrder final : public Order {
 public:
  void Append(TaskList& tasks) override {
    tasks_.Append(tasks);
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
  TaskList tasks_;
};

// The same with a queue that does something while it stands.
class QueueOrder final : public Order {
 public:
  explicit QueueOrder(const QueueOptions& options) : tasks_(options) {}

  void Append(TaskList& tasks) override {
    while (Task* task = tasks.Pop()) tasks_.Push(task);
    ready_ = tasks_.size();
  }
  Next Pop(TimePoint now) override {
    --ready_;
    if (Task* const overdue = tasks_.TakeOverdue(now)) return {.task = overdue, .shed = true};
    return {.task = tasks_.Take()};
  }
  void TakeAll(TaskList* left_over) override {
    tasks_.MoveTo(left_over);
    ready_ = 0;
  }
  size_t size() const override { return ready_; }

 private:
  WaitingTasks tasks_;
};

}  // namespace

std::unique_ptr<Order> MakeFifoOrder(const QueueOptions& options) {
  if (options.any()) return std::make_unique<QueueOrder>(options);
  return std::make_unique<FifoOrder>();
}

}  // namespace curtail
