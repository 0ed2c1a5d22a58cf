// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/sync.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "curtail/exec/fiber.h"
#include "curtail/exec/task_testing.h"

namespace curtail {
namespace {

// Runs `bodies` on fibers of one thread until all have ended.
void RunOnFibers(std::vector<std::function<void()>> bodies) {
  FiberLoop loop({});
  const WaitHint hint{.waiting = Waiting::kFiber, .loop = &loop};
  const ScopedWait scope(hint);
  Parker seat;
  std::vector<std::unique_ptr<FunctionTask>> tasks;
  for (auto& body : bodies) {
    tasks.push_back(std::make_unique<FunctionTask>(std::move(body)));
    ASSERT_TRUE(loop.Start(tasks.back().get(), hint));
  }
  while (loop.live() > 0) {
    if (loop.HasReady()) {
      loop.RunReady();
    } else {
      loop.Wait(seat, seat.Ticket(), nullptr);
    }
  }
}

TEST(FiberMutex, ExcludesFibersOfOneThreadThatWaitInside) {
  FiberMutex mutex;
  int inside = 0;
  int entered = 0;
  const auto body = [&] {
    for (int i = 0; i < 100; ++i) {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(++inside, 1);
      ++entered;
      SleepUntil(Deadline::In(std::chrono::microseconds(10)));
      --inside;
    }
  };
  RunOnFibers({body, body, body});
  EXPECT_EQ(entered, 300);
}

TEST(FiberMutex, ExcludesThreadsAndFibersAlike) {
  FiberMutex mutex;
  int count = 0;
  const auto body = [&] {
    for (int i = 0; i < 2'000; ++i) {
      const std::lock_guard lock(mutex);
      ++count;
    }
  };
  std::thread plain(body);
  std::thread loop([&] { RunOnFibers({body, body}); });
  RunOnFibers({body, body, body});
  plain.join();
  loop.join();
  EXPECT_EQ(count, 6 * 2'000);
}

TEST(FiberMutex, TryLockFailsWhileHeld) {
  FiberMutex mutex;
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(FiberCondition, PassesItemsFromAThreadToFibers) {
  FiberMutex mutex;
  FiberCondition changed;
  int items = 0, taken = 0;
  constexpr int kItems = 5'000;
  const auto taker = [&] {
    std::unique_lock lock(mutex);
    while (taken < kItems) {
      if (items == 0) {
        changed.wait(lock);
        continue;
      }
      --items;
      if (++taken == kItems) changed.notify_all();
    }
  };
  std::thread giver([&] {
    for (int i = 0; i < kItems; ++i) {
      const std::lock_guard lock(mutex);
      ++items;
      changed.notify_one();
    }
  });
  RunOnFibers({taker, taker, taker});
  giver.join();
  EXPECT_EQ(taken, kItems);
}

TEST(FiberCondition, ReturnsAtTheDeadline) {
  FiberMutex mutex;
  FiberCondition changed;
  const auto body = [&] {
    std::unique_lock lock(mutex);
    const Deadline deadline = Deadline::In(std::chrono::milliseconds(5));
    EXPECT_FALSE(changed.wait_until(lock, deadline));
    EXPECT_TRUE(deadline.Expired());
    EXPECT_TRUE(lock.owns_lock());
  };
  body();
  RunOnFibers({body, body});
  // Waiters that gave up are not in the list any more.
  changed.notify_all();
}

}  // namespace
}  // namespace curtail
