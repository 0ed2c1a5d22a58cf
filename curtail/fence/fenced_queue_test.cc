// SPDX-License-Identifier: Apache-2.0
//
// Rule F10 of fenced_order.h: what the queues of a fence do while they stand, in time that the test counts.
#include <gtest/gtest.h>

#include "curtail/fence/fenced_order_testing.h"

namespace curtail {
namespace {

constexpr QueueOptions kCodel{.shed = ShedMode::kCodel};

// Time passes, and tasks of the class come.
void Come(FenceScaffold& s, uint8_t path_class, int ms, int each_ms) {
  for (int i = 0; i < ms; ++i) {
    s.now += kMs;
    s.Append(path_class, each_ms);
    s.Run();
  }
}

TEST(FencedQueue, AStalledClassShedsWhatIsOverdueAndOthersLoseNothing) {
  FenceScaffold s({.mode = FenceMode::kStrict, .max_waiting = 1000}, 8, kAB, kCodel);
  Come(s, kA, 90, 1);
  EXPECT_EQ(s.shed, 0u) << "the first interval";
  Come(s, kA, 500, 1);
  EXPECT_EQ(s.running[kA], 4u);
  EXPECT_GT(s.Stats(kA).shed, 450u);
  EXPECT_EQ(s.Stats(kA).shed, s.shed) << "not one was refused because of a full queue";
  EXPECT_LE(s.Stats(kA).waiting, 12u) << "those of the last 10 ms";
  for (int i = 0; i < 100; ++i) {
    Come(s, kB, 1, 1);
    ASSERT_EQ(s.running[kB], 1u);
    s.End(kB);
  }
  EXPECT_EQ(s.Stats(kB).shed, 0u);
}

TEST(FencedQueue, TheNewestOfAStalledClassHasTheNextPermit) {
  FenceScaffold s({.mode = FenceMode::kStrict, .max_waiting = 1000}, 8, kAB, {.mode = QueueMode::kLifo});
  Come(s, kA, 250, 1);
  EXPECT_GT(s.Stats(kA).waiting, 200u);
  const FencedTask* const newest = &s.tasks.back();
  s.End(kA);
  s.Run();
  EXPECT_EQ(newest->came_out, 1);
  EXPECT_EQ(s.shed, 0u);
}

// Tasks with a permit may wait for a thread. One that is shed returns its permit like any other.
TEST(FencedQueue, ATaskThatIsShedWithItsPermitReturnsIt) {
  FenceScaffold s({.mode = FenceMode::kStrict, .permits = 300}, 0, kAB, kCodel);  // fibers: no thread is held
  s.Append(kA, 200);
  ASSERT_EQ(s.Stats(kA).begun, 135u);
  for (int i = 0; i < 90; ++i) {
    s.now += 3 * kMs;
    s.RunOne();
    if (s.running[kA] > 0) s.End(kA);
  }
  EXPECT_GT(s.Stats(kA).shed, 0u);
  while (s.order->ready() > 0) s.RunOne();
  while (s.running[kA] > 0) s.End(kA);
  while (s.order->ready() > 0) s.RunOne();
  while (s.running[kA] > 0) s.End(kA);
  EXPECT_EQ(s.Stats(kA).in_use, 0u);
  EXPECT_EQ(s.order->size(), 0u);
}

TEST(FencedQueue, LocalTasksAreShedToo) {
  for (const FenceMode mode : {FenceMode::kStrict, FenceMode::kDryRun}) {
    FenceScaffold s({.mode = mode}, 8, kAB, kCodel);
    s.Append(Fence::kLocal, 300);
    for (int i = 0; i < 120; ++i) {
      s.now += 2 * kMs;
      s.RunOne();
    }
    EXPECT_GT(s.Stats(Fence::kLocal).shed, 0u);
    EXPECT_EQ(s.Stats(Fence::kLocal).shed, s.shed);
    EXPECT_EQ(s.Stats(Fence::kLocal).in_use, 0u);
  }
}

}  // namespace
}  // namespace curtail
