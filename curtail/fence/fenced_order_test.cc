// SPDX-License-Identifier: Apache-2.0
//
// The rules of fenced_order.h and O1 to O5 of order.h, one by one; fenced_order_random_test.cc has random lives. The
// scaffold is single-threaded, as an executor's mutex makes it.
#include "curtail/fence/fenced_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "curtail/fence/fenced_order_testing.h"

namespace curtail {
namespace {

TEST(FencedOrder, GivesAStalledClassItsPermitsAndNoMore) {
  FenceScaffold s({.mode = FenceMode::kStrict, .max_waiting = 5}, 8, kAB);
  s.Append(kA, 20);
  s.Run();
  EXPECT_EQ(s.running[kA], 4u);
  EXPECT_EQ(s.Stats(kA).waiting, 5u);
  EXPECT_EQ(s.Stats(kA).refused, 11u);
  EXPECT_EQ(s.shed, 11u);
  EXPECT_EQ(s.Stats(kA).queued, 5u);
  for (int i = 0; i < 100; ++i) {
    s.Append(kB, 1);
    s.Run();
    ASSERT_EQ(s.running[kB], 1u);
    s.End(kB);
  }
  EXPECT_EQ(s.Stats(kB).queued, 0u);
  EXPECT_GE(s.fence.retry_after_ms(kA), 1u);
}

TEST(FencedOrder, ReturnsAPermitToTheClassThatWaits) {
  FenceScaffold s({.mode = FenceMode::kStrict}, 8, kAB);
  s.Append(kA, 6);
  s.Run();
  ASSERT_EQ(s.running[kA], 4u);
  s.End(kA);
  EXPECT_EQ(s.order->ready(), 1u);
  s.Run();
  EXPECT_EQ(s.running[kA], 4u);
  EXPECT_EQ(s.Stats(kA).waiting, 1u);
}

// The race of F5, step by step: a request ends when its class holds a task back, and has not been named yet.
TEST(FencedOrder, SeesAPermitThatComesBackDuringAnAppend) {
  for (const FenceMode mode : {FenceMode::kStrict, FenceMode::kOn}) {
    FenceScaffold s({.mode = mode}, 8, kAB);
    s.Append(kA, 12);
    s.Run();
    while (s.Stats(kA).waiting > 0) s.End(kA), s.Run();
    const size_t before = s.running[kA];
    TaskList list;
    list.Push(s.Make(kA));
    FencedTask* const next = s.Make(Fence::kLocal);
    next->on_kind = [&] {
      --s.running[kA];
      EXPECT_FALSE(s.fence.End(kA)) << "it sees no task that waits";
    };
    list.Push(next);
    s.Append(list);
    EXPECT_EQ(s.Stats(kA).waiting, 0u) << "so the order sees the permit";
    s.Run();
    EXPECT_EQ(s.running[kA], before);
    EXPECT_EQ(s.Stats(Fence::kLocal).begun, 1u);
  }
}

TEST(FencedOrder, RunsLocalTasksFirstAndAtMostEightInARow) {
  FenceScaffold s({.mode = FenceMode::kStrict}, 32, kAB);
  TaskList list;
  for (int i = 0; i < 2; ++i) list.Push(s.Make(kA));
  for (int i = 0; i < 20; ++i) list.Push(s.Make(Fence::kLocal));
  s.Append(list);
  s.Run();
  ASSERT_EQ(s.ran.size(), 22u);
  EXPECT_EQ(std::count(s.ran.begin(), s.ran.begin() + 8, Fence::kLocal), 8);
  EXPECT_EQ(s.ran[8], kA);
  EXPECT_EQ(std::count(s.ran.begin() + 9, s.ran.begin() + 17, Fence::kLocal), 8);
  EXPECT_EQ(s.ran[17], kA);
}

TEST(FencedOrder, ServesClassesInTurn) {
  FenceScaffold s({.mode = FenceMode::kStrict}, 0, kAB);
  TaskList list;
  for (int i = 0; i < 3; ++i) list.Push(s.Make(kA));
  for (int i = 0; i < 3; ++i) list.Push(s.Make(kB));
  s.Append(list);
  while (s.order->ready() > 0) s.RunOne();
  EXPECT_THAT(s.ran, testing::ElementsAre(kA, kB, kA, kB, kA, kB));
}

TEST(FencedOrder, KeepsAThreadForLocalTasks) {
  for (const FenceMode mode : {FenceMode::kStrict, FenceMode::kOn}) {
    FenceScaffold s({.mode = mode}, 8, 1u << kA);
    s.Append(kA, 50);
    s.Run();
    EXPECT_EQ(s.running[kA], mode == FenceMode::kOn ? 8u : 7u);
    s.Append(Fence::kLocal, 3);
    s.Run();
    EXPECT_EQ(s.Stats(Fence::kLocal).begun, 3u);
    EXPECT_EQ(s.order->ready(), 0u);
  }
}

TEST(FencedOrder, ShrinksLazily) {
  FenceScaffold s({.mode = FenceMode::kStrict}, 8, kAB);
  s.Append(kA, 6);
  s.Run();
  s.fence.SetLimit(kA, 2);
  s.Poke();
  EXPECT_EQ(s.running[kA], 4u);
  s.End(kA), s.End(kA);
  EXPECT_EQ(s.order->ready(), 0u);
  s.End(kA);
  EXPECT_EQ(s.order->ready(), 1u);
  s.fence.SetLimit(kA, 4);
  s.Poke();
  EXPECT_EQ(s.order->ready(), 2u);
}

TEST(FencedOrder, KeepsAFenceThroughAChangeOfThreads) {
  FenceScaffold s({.mode = FenceMode::kStrict, .permits = 64}, 0, kAB);
  s.Append(kA, 60);
  while (s.order->ready() > 0) s.RunOne();
  EXPECT_EQ(s.running[kA], 29u) << "half of 57 permits";
  s.SetThreads(8);
  EXPECT_EQ(s.order->ready(), 0u);
  s.Append(kB, 4);
  EXPECT_EQ(s.order->ready(), 3u) << "its own, although A uses more than there are";
  while (s.order->ready() > 0) s.RunOne();
  s.SetThreads(0);
  EXPECT_EQ(s.order->ready(), 1u);
}

TEST(FencedOrder, GivesNoPermitToAnAbandonedTask) {
  FenceScaffold s({.mode = FenceMode::kStrict, .max_waiting = 2}, 8, kAB);
  s.Append(kA, 6);
  s.Run();
  for (FencedTask& task : s.tasks) task.is_abandoned = task.came_out == 0;
  s.Append(kA, 1);
  EXPECT_EQ(s.Stats(kA).refused, 0u) << "its queue is full of abandoned ones";
  s.End(kA);
  s.Run();
  EXPECT_EQ(s.shed, 2u);
  EXPECT_EQ(s.running[kA], 4u);
}

TEST(FencedOrder, HandsOutEveryTaskWhenThePoolsStop) {
  FenceScaffold s({.mode = FenceMode::kStrict, .max_waiting = 1}, 8, kAB);
  s.Append(kA, 9);
  s.Append(Fence::kLocal, 1);
  EXPECT_EQ(s.order->size(), 10u);
  TaskList left_over;
  s.order->TakeAll(&left_over);
  EXPECT_EQ(left_over.size(), 10u);
  EXPECT_EQ(s.order->size(), 0u);
  while (left_over.Pop() != nullptr) {
  }
}

TEST(DryRunOrder, RunsInTurnAndCountsWhatAFenceWouldDo) {
  FenceScaffold s({.mode = FenceMode::kDryRun, .max_waiting = 2}, 8, kAB);
  s.Append(kA, 7);
  s.Append(Fence::kLocal, 1);
  s.Run();
  EXPECT_EQ(s.ran, (std::vector<uint8_t>{kA, kA, kA, kA, kA, kA, kA, Fence::kLocal}));
  EXPECT_EQ(s.Stats(kA).begun, 7u);
  EXPECT_EQ(s.Stats(kA).queued, 2u);
  EXPECT_EQ(s.Stats(kA).refused, 1u);
  EXPECT_EQ(s.shed, 0u);
  s.End(kA);
  EXPECT_EQ(s.Stats(kA).in_use, 6u);
}

}  // namespace
}  // namespace curtail
