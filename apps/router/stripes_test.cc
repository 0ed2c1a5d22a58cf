// SPDX-License-Identifier: Apache-2.0
#include "apps/router/stripes.h"
#include "curtail/base/testing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace curtail::router {
namespace {

TEST(Stripes, AreHeldByOneAtATime) {
  Stripes stripes;
  Stripes::Hold first = stripes.Take(7, Deadline::In(kMaxTestWait));
  EXPECT_TRUE(first);
  EXPECT_FALSE(stripes.TryTake(7));
  EXPECT_TRUE(stripes.TryTake(8));
  Stripes::Hold moved = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: what a moved-from hold is
  EXPECT_FALSE(stripes.TryTake(7));
  moved = Stripes::Hold();
  EXPECT_TRUE(stripes.TryTake(7));
}

TEST(Stripes, AWaitEndsAtItsDeadline) {
  Stripes stripes;
  const Stripes::Hold hold = stripes.Take(0, Deadline::In(kMaxTestWait));
  const TimePoint before = Now();
  EXPECT_FALSE(stripes.Take(0, Deadline::In(std::chrono::milliseconds(20))));
  EXPECT_GE(Now() - before, std::chrono::milliseconds(20));
}

// No two threads are in one stripe at once, and each gets its turn: a counter without a lock of its own comes
// out right.
TEST(Stripes, ExcludeEachOtherStress) {
  Stripes stripes;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        const Stripes::Hold hold = stripes.Take(3, Deadline::In(kMaxTestWait));
        ASSERT_TRUE(hold);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4 * 5000);
}

// A hold ends on another thread than it began on.
TEST(Stripes, MayBeGivenBackByAnotherThread) {
  Stripes stripes;
  Stripes::Hold hold = stripes.Take(1, Deadline::In(kMaxTestWait));
  std::thread([moved = std::move(hold)]() mutable { moved = Stripes::Hold(); }).join();
  EXPECT_TRUE(stripes.TryTake(1));
}

TEST(Hash, IsXxh3AndSpreadsKeysEvenly) {
  EXPECT_EQ(HashOf(""), 0x2D06800538D394C2u);  // of xxHash's own test vectors
  std::vector<int> shards(16);
  for (int i = 0; i < 16000; ++i) ++shards[ShardOf(HashOf("user" + std::to_string(i)), 16)];
  for (const int keys : shards) {
    EXPECT_GT(keys, 850);
    EXPECT_LT(keys, 1150);
  }
}

}  // namespace
}  // namespace curtail::router
