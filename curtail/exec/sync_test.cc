// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "curtail/exec/fiber/fiber_testing.h"

namespace curtail {
namespace {

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

// One that comes later does not pass the waiter that has been given the mutex, though that has yet to run.
TEST(FiberMutex, GoesToItsWaitersInTheOrderOfArrival) {
  FiberMutex mutex;
  std::vector<int> order;
  const auto enter = [&](int number) {
    const std::lock_guard lock(mutex);
    order.push_back(number);
  };
  mutex.lock();
  RunOnFibers({[&] { enter(0); }, [&] { enter(1); }, [&] { enter(2); },
               [&] {
                 mutex.unlock();
                 EXPECT_FALSE(mutex.try_lock());
                 enter(3);
               }});
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3));
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

TEST(FiberCondition, NotifiesItsWaitersInTheOrderOfArrival) {
  FiberMutex mutex;
  FiberCondition changed;
  std::vector<int> order;
  const auto wait = [&](int number) {
    std::unique_lock lock(mutex);
    changed.wait(lock);
    order.push_back(number);
    changed.notify_one();
  };
  RunOnFibers({[&] { wait(0); }, [&] { wait(1); }, [&] { wait(2); }, [&] { changed.notify_one(); }});
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2));
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
