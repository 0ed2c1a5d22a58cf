// SPDX-License-Identifier: Apache-2.0
//
// fenced_order_testing.h - an executor without threads for tests of a fenced order.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <vector>

#include "curtail/exec/task.h"
#include "curtail/fence/fenced_order.h"

namespace curtail {

inline constexpr Nanos kMs = std::chrono::milliseconds(1);

// Of random tests: CURTAIL_SEED, or another each time. Prints it.
inline uint64_t SeedOfRun() {
  const char* const given = std::getenv("CURTAIL_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10)
                                         : static_cast<uint64_t>(Now().time_since_epoch().count());
  std::cout << "seed " << seed << "\n";
  return seed;
}

inline constexpr uint8_t kA = Fence::kFirst, kB = Fence::kFirst + 1, kC = Fence::kFirst + 2;

class FencedTask final : public Task {
 public:
  explicit FencedTask(TaskKind* kind) : kind_(kind) {}
  void Run(const WaitHint&) override {}
  TaskKind* kind() override {
    if (on_kind) on_kind();
    return kind_;
  }
  bool abandoned() const override { return is_abandoned; }

  std::function<void()> on_kind;  // called when the order asks for its class
  bool is_abandoned = false;
  int came_out = 0;

 private:
  TaskKind* const kind_;
};

// An executor without threads: `threads` tasks run at once, and as many more as the order wants threads beside, until
// the test ends them.
class FenceScaffold {
 public:
  FenceScaffold(const FenceOptions& options, uint32_t threads, uint64_t present,
                const QueueOptions& queue = {})
      : fence(options, TimePoint(), time_), order(MakeFencedOrder(&fence, queue)), queue_(queue) {
    for (size_t i = 0; i < kinds_.size(); ++i) kinds_[i].set_path_class(static_cast<uint8_t>(i));
    fence.SetPresent(present);
    SetThreads(threads);
  }
  ~FenceScaffold() {
    TaskList left_over;
    order->TakeAll(&left_over);
  }

  void SetThreads(uint32_t threads) {
    threads_ = threads == 0 ? 0 : threads + order->Beside(threads);
    order->SetThreads(threads_);
    Poke();
  }
  void Poke() {
    TaskList none;
    order->Append(none);
  }
  FencedTask* Make(uint8_t path_class) { return &tasks.emplace_back(&kinds_[path_class]); }
  void Append(uint8_t path_class, int count) {
    TaskList list;
    for (int i = 0; i < count; ++i) list.Push(Make(path_class));
    Append(list);
  }
  void Append(TaskList& list) {
    list.Stamp(now);
    order->Append(list);
    EXPECT_TRUE(list.empty());
  }

  // Runs what is ready, as long as a thread is free; what needs no permit ends at once.
  void Run() {
    while (running_count() < threads_ && order->ready() > 0) RunOne();
  }
  void RunOne() {
    const size_t ready = order->ready();
    const Order::Next next = order->Pop(now);
    ASSERT_NE(next.task, nullptr) << "O3";
    ASSERT_LT(order->ready(), ready) << "O3";
    auto* const task = static_cast<FencedTask*>(next.task);
    ASSERT_EQ(++task->came_out, 1) << "O2";
    const uint8_t path_class = task->order_note() & ~Fence::kShedWithPermit;
    ran.push_back(path_class);
    shed_last = next.shed;
    permit_last = Fence::PermitOf(task->order_note(), next.shed);
    if (next.shed) {
      ++shed;
      if (!task->is_abandoned && task->shed_reason() == ShedReason::kOverdue) {
        ASSERT_EQ(queue_.shed, ShedMode::kCodel);
        ASSERT_GT(now - task->queued_at(), 2 * queue_.target) << "F10";
      }
      if (permit_last != Fence::kLocal && fence.End(permit_last)) Poke();
    } else if (path_class != Fence::kLocal) {
      ++running[path_class];
    }
  }
  void End(uint8_t path_class) {
    ASSERT_GT(running[path_class], 0u);
    --running[path_class];
    if (fence.End(path_class)) Poke();
  }
  size_t running_count() const {
    size_t sum = 0;
    for (const size_t n : running) sum += n;
    return sum;
  }
  FenceClassStats Stats(uint8_t path_class) const { return fence.Sample(path_class); }

  TimePoint now = TimePoint() + std::chrono::hours(1);

 private:
  struct Time final : TimeSource {
    explicit Time(const TimePoint* n) : now(*n) {}
    TimePoint Now() const override { return now; }
    const TimePoint& now;
  };
  const Time time_{&now};

 public:
  Fence fence;
  std::unique_ptr<Order> order;
  std::deque<FencedTask> tasks;
  std::array<size_t, Fence::kMaxClasses> running{};
  std::vector<uint8_t> ran;  // the classes of what came out, in order
  size_t shed = 0;
  bool shed_last = false;
  uint8_t permit_last = Fence::kLocal;  // of the last task that came out

 private:
  const QueueOptions queue_;
  uint32_t threads_ = 0;
  std::array<TaskKind, Fence::kMaxClasses> kinds_;
};

inline constexpr uint64_t kAB = 1u << kA | 1u << kB;

}  // namespace curtail
