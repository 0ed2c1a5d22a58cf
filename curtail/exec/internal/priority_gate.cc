// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/priority_gate.h"

#include <utility>

namespace curtail {
namespace {

class PriorityGate final : public Order {
 public:
  PriorityGate(PriorityLimit* limit, std::unique_ptr<Order> order)
      : limit_(*limit), order_(std::move(order)) {}

  uint32_t Beside(uint32_t threads) const override { return order_->Beside(threads); }
  void SetThreads(uint32_t threads) override { order_->SetThreads(threads); }
  void Append(TaskList& tasks) override {
    TaskList admitted;
    while (Task* task = tasks.Pop()) {
      if (limit_.Admit(task->priority(), task->queued_at(), order_->size())) {
        admitted.Push(task);
      } else {
        task->set_order_note(0);
        task->set_shed_reason(ShedReason::kLessImportant);
        refused_.Push(task);
      }
    }
    order_->Append(admitted);
    Count();
  }
  // Refusals and others take turns.
  Next Pop(TimePoint now) override {
    Next next;
    last_was_refusal_ = order_->ready() == 0 || (!refused_.empty() && !last_was_refusal_);
    if (last_was_refusal_) {
      next = {.task = refused_.Pop(), .shed = true};
    } else {
      next = order_->Pop(now);
      limit_.Taken(now - next.task->queued_at(),
                   next.shed && next.task->shed_reason() == ShedReason::kOverdue);
    }
    Count();
    return next;
  }
  void TakeAll(TaskList* left_over) override {
    left_over->Append(refused_);
    order_->TakeAll(left_over);
    Count();
  }
  size_t size() const override { return order_->size() + refused_.size(); }

 private:
  void Count() { ready_ = order_->ready() + refused_.size(); }

  PriorityLimit& limit_;
  const std::unique_ptr<Order> order_;
  TaskList refused_;
  bool last_was_refusal_ = false;
};

}  // namespace

std::unique_ptr<Order> MakePriorityGate(PriorityLimit* limit, std::unique_ptr<Order> order) {
  return std::make_unique<PriorityGate>(limit, std::move(order));
}

}  // namespace curtail
