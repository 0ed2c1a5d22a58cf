// SPDX-License-Identifier: Apache-2.0
//
// The rules of lending.h, one after the other, in time that the test counts.
#include "curtail/fence/lending.h"

#include <gtest/gtest.h>

#include "curtail/fence/fenced_order_testing.h"

namespace curtail {
namespace {

const FenceOptions kLending{.mode = FenceMode::kOn, .max_waiting = 4};

// For a time, `at_once` requests of the class come every 2 ms, and are answered within 1 ms.
void Flow(FenceScaffold& s, uint8_t path_class, int at_once, int times = 50) {
  for (int i = 0; i < times; ++i) {
    s.now += kMs;
    s.Append(path_class, at_once);
    s.Run();
    s.now += kMs;
    while (s.running[path_class] > 0) s.End(path_class);
    s.Run();
  }
}

// For a time, one request of the class comes each ms, and none is answered.
void Stall(FenceScaffold& s, uint8_t path_class, int ms) {
  for (int i = 0; i < ms; ++i) {
    s.now += kMs;
    s.Append(path_class, 1);
    s.Run();
  }
}

TEST(FenceLending, WantsThreadsBeside) {  // L1
  EXPECT_EQ(FenceLending::Beside(1), 2u);
  EXPECT_EQ(FenceLending::Beside(4), 2u);
  EXPECT_EQ(FenceLending::Beside(8), 4u);
  EXPECT_EQ(FenceLending::Beside(9), 5u);
  Fence fence({.mode = FenceMode::kOn, .permits = 100});
  FenceLending lending(&fence);
  EXPECT_EQ(fence.permits(), 100u);
  for (const uint32_t threads : {1u, 2u, 8u, 16u, 63u}) {
    lending.SetThreads(threads + FenceLending::Beside(threads));
    EXPECT_EQ(fence.permits(), threads);
  }
  lending.SetThreads(8);
  EXPECT_EQ(fence.permits(), 5u) << "three of the pool take their place";
  lending.SetThreads(1);
  EXPECT_EQ(fence.permits(), 1u);
}

TEST(FenceLending, LendsEveryIdlePermitAtOnce) {  // L3
  FenceScaffold s(kLending, 8, kAB | 1u << kC);
  s.Append(kA, 20);
  s.Run();
  EXPECT_EQ(s.running[kA], 8u);
  EXPECT_EQ(s.Stats(kA).waiting, 12u);
  EXPECT_EQ(s.Stats(kA).refused, 0u) << "its queue does not stand yet";
  EXPECT_EQ(s.Stats(kA).limit, 8u);
}

TEST(FenceLending, CallsPermitsBackByNotStartingNewOnes) {  // L4
  FenceScaffold s(kLending, 8, kAB);
  s.Append(kA, 20);
  s.Run();
  s.Append(kB, 4);
  s.Run();
  EXPECT_EQ(s.running[kB], 3u) << "on threads beside";
  s.Append(Fence::kLocal, 1);
  s.Run();
  EXPECT_EQ(s.Stats(Fence::kLocal).begun, 1u) << "on the last";
  for (const size_t left : {7u, 6u, 5u, 4u, 4u}) {
    s.End(kA);
    s.Run();
    EXPECT_EQ(s.running[kB], 4u);
    EXPECT_EQ(s.running[kA], left);
  }
  for (int i = 0; i < 4; ++i) s.End(kB);
  s.Run();
  EXPECT_EQ(s.running[kA], 8u) << "and lends again";
  EXPECT_GT(s.Stats(kA).borrowed, 0u);
}

TEST(FenceLending, AClassThatStopsLeavesOthersWhatTheyNeed) {  // L5, L7
  FenceScaffold s(kLending, 8, kAB);
  Flow(s, kB, 4);
  Flow(s, kA, 1);
  Stall(s, kA, 400);
  EXPECT_EQ(s.running[kA], 7u) << "8 and three threads beside, less 4";
  for (int i = 0; i < 100; ++i) {
    s.Append(kB, 4);
    s.Run();
    ASSERT_EQ(s.running[kB], 4u);
    Stall(s, kA, 1);
    while (s.running[kB] > 0) s.End(kB);
  }
  EXPECT_EQ(s.running[kA], 7u);
  EXPECT_EQ(s.Stats(kB).queued, 0u);
  Stall(s, kA, 1100);
  EXPECT_EQ(s.running[kA], 8u) << "B has needed nothing for two windows";
  s.Append(kB, 1);
  s.Run();
  EXPECT_EQ(s.running[kB], 1u) << "on a thread beside";
}

// L5: what the others need fits the threads beside, so that the class keeps all permits.
TEST(FenceLending, AClassThatStopsHasAllPermitsIfOthersNeedFew) {
  FenceScaffold s(kLending, 8, kAB);
  Flow(s, kA, 1, 1000);  // so that it is known what is usual
  Flow(s, kB, 3);
  Stall(s, kA, 100);
  EXPECT_EQ(s.running[kA], 8u);
  for (int i = 0; i < 100; ++i) {
    s.Append(kB, 3);
    s.Run();
    ASSERT_EQ(s.running[kB], 3u);
    s.End(kA);
    Stall(s, kA, 4);
    ASSERT_EQ(s.running[kA], 8u) << "while the others run beside";
    while (s.running[kB] > 0) s.End(kB);
  }
}

TEST(FenceLending, AClassThatSlowsDownLeavesOthersWhatTheyNeed) {  // L6, L7
  FenceScaffold s(kLending, 8, kAB);
  Flow(s, kA, 2, 1000);  // so that it is known what is usual
  Flow(s, kB, 4);
  for (int i = 0; i < 600; ++i) {  // each answer takes 60 ms or so, and they come one by one
    Stall(s, kA, 1);
    if (i % 10 == 9) s.End(kA);
    ASSERT_LE(s.running[kA], 7u) << i;
    if (i % 50 == 0) {
      s.Append(kB, 4);
      s.Run();
      ASSERT_EQ(s.running[kB], 4u) << i;
      while (s.running[kB] > 0) s.End(kB);
    }
  }
  s.now += 2000 * kMs;
  while (s.running[kA] > 0) s.End(kA);
  Flow(s, kA, 2, 200);
  s.Append(kA, 8);
  s.Run();
  EXPECT_EQ(s.running[kA], 8u) << "it is as quick as before";
}

TEST(FenceLending, AClassThatIsSlowByNatureDoesNotStall) {  // L7
  FenceScaffold s(kLending, 8, kAB);
  Flow(s, kB, 3);
  s.Append(kA, 1);
  s.Run();
  s.now += 300 * kMs;
  s.End(kA);
  Flow(s, kB, 3);
  s.Append(kA, 20);
  s.Run();
  EXPECT_EQ(s.running[kA], 8u);
  s.now += 400 * kMs;
  s.End(kA);
  s.Run();
  EXPECT_EQ(s.running[kA], 8u);
}

TEST(FenceLending, AClassOfQuickAndSlowAnswersDoesNotStall) {  // L6
  FenceScaffold s(kLending, 8, kAB);
  Flow(s, kB, 3);
  for (int i = 0; i < 400; ++i) {  // one in three takes no time, the others 30 ms
    s.Append(kA, 1);
    s.Run();
    s.now += (i % 3 == 0 ? 0 : 30) * kMs;
    s.End(kA);
  }
  Flow(s, kB, 3);
  s.Append(kA, 20);
  s.Run();
  for (int i = 0; i < 100; ++i) {
    s.now += 4 * kMs;
    s.End(kA);
    s.Run();
    s.Append(kA, 1);
    ASSERT_EQ(s.running[kA], 8u);
  }
}

TEST(FenceLending, AClassRemembersForMinutesWhatIsUsual) {  // L6
  FenceScaffold s(kLending, 8, kAB);
  Flow(s, kA, 2, 2000);
  for (int i = 0; i < 600; ++i) {  // a minute in which ten are answered a second, and more come
    Flow(s, kB, 4, 10);
    s.Append(kA, 2);
    s.Run();
    ASSERT_LE(s.running[kA], 7u) << i;
    s.now += 80 * kMs;
    s.End(kA);
    s.Run();
  }
}

TEST(FenceLending, ClassesThatAllStallLendEachOther) {  // L7
  FenceScaffold s(kLending, 8, kAB);
  Flow(s, kB, 4);
  Flow(s, kA, 4);
  s.Append(kB, 1);
  s.Run();
  s.now += 100 * kMs;  // B stalls
  s.Append(kA, 4);
  s.Run();
  s.now += 100 * kMs;  // A stalls
  s.Append(kA, 8);
  s.Run();
  EXPECT_EQ(s.running[kA], 7u);
  EXPECT_EQ(s.running[kB], 1u);
}

TEST(FenceLending, ALimitBoundsItsClassWhoeverIsIdle) {  // L8
  FenceScaffold s(kLending, 8, kAB);
  s.fence.SetLimit(kA, 3);
  s.Append(kA, 6);
  s.Run();
  EXPECT_EQ(s.running[kA], 3u);
  EXPECT_EQ(s.Stats(kA).limit, 3u);
  s.fence.SetLimit(kA, 5);
  s.Poke();
  s.Run();
  EXPECT_EQ(s.running[kA], 5u);
}

TEST(FenceLending, FewerThreadsLeaveReserves) {  // L9
  FenceScaffold s({.mode = FenceMode::kOn, .permits = 64}, 0, kAB);
  s.Append(kA, 60);
  while (s.order->ready() > 0) s.RunOne();
  EXPECT_EQ(s.running[kA], 60u);
  s.SetThreads(8);
  s.Append(kB, 3);
  EXPECT_EQ(s.order->ready(), 3u) << "although A uses more than there are";
  while (s.order->ready() > 0) s.RunOne();
  s.Append(kA, 1);
  EXPECT_EQ(s.order->ready(), 0u);
  s.SetThreads(0);
  EXPECT_EQ(s.order->ready(), 1u);
}

TEST(FenceLending, AQueueRefusesOnceItStands) {  // F6
  FenceScaffold s(kLending, 8, kAB);
  Stall(s, kA, 1000);
  EXPECT_EQ(s.Stats(kA).refused, 0u);
  EXPECT_EQ(s.Stats(kA).waiting, 992u);
  Stall(s, kA, 100);
  EXPECT_GT(s.Stats(kA).refused, 85u);
  while (s.running[kA] > 0) s.End(kA), s.Run();
  Stall(s, kA, 100);
  EXPECT_LE(s.Stats(kA).refused, 100u) << "it does not stand any more";
}

}  // namespace
}  // namespace curtail
