// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/fifo_order.h"

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

}  // namespace

std::unique_ptr<Order> MakeFifoOrder() { return std::make_unique<FifoOrder>(); }

}  // namespace curtail
