// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/fair_semaphore.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "curtail/base/testing.h"

namespace curtail::apps {
namespace {

class FairSemaphoreTest : public testing::Test {
 protected:
  // On this thread, which waits where it is.
  absl::StatusOr<FairSemaphore::Permit> Acquire(const std::string& key, Nanos patience = kMaxTestWait) {
    Context ctx(patience);
    auto call = semaphore_.Acquire(ctx, key);
    call.Start([](void*) {}, nullptr);
    return call.Take();
  }

  // Two permits, of which a key has one at once, and six callers may wait.
  FairSemaphore semaphore_{/*permits=*/2, /*of_key=*/1, /*most_waiting=*/6};
};

TEST_F(FairSemaphoreTest, AKeyThatTakesAllItCanLeavesPlacesAndPermits) {
  std::optional<absl::StatusOr<FairSemaphore::Permit>> first(Acquire("greedy"));
  ASSERT_TRUE(first->ok());
  std::atomic<int> served{0}, refused{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 20; ++i) {
    others.emplace_back([&] {
      const auto permit = Acquire("greedy");
      ++(permit.ok() ? served : refused);
    });
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (refused < 18 && !deadline.Expired()) BetweenLooks();
  EXPECT_EQ(refused, 18) << "two wait: of eight places, one that has three finds five free";
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Acquire("honest", std::chrono::milliseconds(1)).ok()) << i;
  EXPECT_EQ(served, 0);
  first.reset();
  for (std::thread& one : others) one.join();
  EXPECT_EQ(served, 2);
  EXPECT_TRUE(Acquire("greedy").ok());
}

TEST_F(FairSemaphoreTest, ACallerWaitsForNoOthersOfAKeyThatHasItsShare) {
  std::optional<absl::StatusOr<FairSemaphore::Permit>> a(Acquire("a")), b(Acquire("b"));
  std::atomic<bool> served{false};
  std::thread second([&] {
    EXPECT_TRUE(Acquire("a").ok());
    served = true;
  });
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (semaphore_.taken() < 3 && !deadline.Expired()) BetweenLooks();
  std::thread other([&] { EXPECT_TRUE(Acquire("c").ok()); });
  b.reset();
  other.join();
  EXPECT_FALSE(served) << "it came first, and its key has the one permit that it may have";
  a.reset();
  second.join();
  EXPECT_EQ(semaphore_.taken(), 0u);
}

}  // namespace
}  // namespace curtail::apps
