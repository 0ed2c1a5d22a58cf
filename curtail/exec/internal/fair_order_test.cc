// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/fair_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <string>

#include "curtail/base/rng.h"

namespace curtail {
namespace {

// A task of a flow that it names.
class FlowTask final : public Task {
 public:
  FlowTask(uint32_t flow, uint64_t place) : place(place) { set_flow(flow); }
  void Run(const WaitHint&) override {}

  const uint64_t place;  // in its flow
};

// An order, and the tasks that it has not given out.
class FairOrderTest : public testing::Test {
 protected:
  // A task for each letter, of the flow that it names; they come at once.
  void Arrive(const std::string& flows) {
    TaskList list;
    for (const char flow : flows) list.Push(&tasks_.emplace_back(flow, came_[Index(flow)]++));
    order_->Append(list);
    EXPECT_TRUE(list.empty());
  }
  // The flow of the task that is given out. Within a flow the oldest is first.
  char Pop() {
    const Order::Next next = order_->Pop(TimePoint());
    EXPECT_FALSE(next.shed);
    return Out(next.task);
  }
  std::string Pop(size_t count) {
    std::string flows;
    while (count-- > 0) flows += Pop();
    return flows;
  }
  char Out(Task* task) {
    const auto& gone = static_cast<FlowTask&>(*task);
    EXPECT_EQ(gone.place, left_[Index(gone.flow())]++) << "O2, or not the oldest of its flow";
    return static_cast<char>(gone.flow());
  }
  uint64_t Waiting(char flow) const { return came_[Index(flow)] - left_[Index(flow)]; }

  std::unique_ptr<Order> order_ = MakeFairOrder();

 private:
  static size_t Index(uint32_t flow) { return flow - 'a'; }

  std::deque<FlowTask> tasks_;
  std::array<uint64_t, 26> came_{};
  std::array<uint64_t, 26> left_{};
};

TEST_F(FairOrderTest, FlowsTakeTurns) {
  EXPECT_EQ(order_->ready(), 0u);
  Arrive("aaaa");
  Arrive("bb");
  EXPECT_EQ(Pop(2), "ab");
  Arrive("c");
  EXPECT_EQ(order_->ready(), 5u);
  EXPECT_EQ(Pop(5), "abcaa");
  EXPECT_EQ(order_->size(), 0u);
  Arrive("b");
  EXPECT_EQ(Pop(1), "b");
}

TEST_F(FairOrderTest, ATaskWaitsForOneOfEachOtherFlow) {
  Rng rng(20260728);
  std::array<uint64_t, 5> waits{};  // pops since the flow's last turn, while it had tasks
  for (int step = 0; step < 20'000; ++step) {
    if (rng.Below(2) == 0) {
      std::string flows;
      for (uint64_t i = rng.Below(8); i > 0; --i)
        flows += static_cast<char>('a' + rng.Below(rng.Below(5) + 1));
      Arrive(flows);
    } else if (order_->ready() > 0) {
      const char turn = Pop();
      for (char flow = 'a'; flow < 'f'; ++flow) {
        uint64_t& waited = waits[static_cast<size_t>(flow - 'a')];
        waited = flow == turn || Waiting(flow) == 0 ? 0 : waited + 1;
        ASSERT_LT(waited, waits.size()) << flow << " at step " << step;
      }
    }
  }
  TaskList left_over;
  const size_t size = order_->size();
  EXPECT_EQ(order_->ready(), size);
  order_->TakeAll(&left_over);
  EXPECT_EQ(left_over.size(), size);
  while (Task* const task = left_over.Pop()) Out(task);
  for (char flow = 'a'; flow < 'f'; ++flow) EXPECT_EQ(Waiting(flow), 0u);
  EXPECT_EQ(order_->ready(), 0u);
  Arrive("ab");
  EXPECT_EQ(Pop(2), "ab");
}

}  // namespace
}  // namespace curtail
