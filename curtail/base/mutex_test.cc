// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace curtail {
namespace {

// A counter that only the mutex orders.
struct Counter {
  Mutex mu;
  int count CURTAIL_GUARDED_BY(mu) = 0;
};

TEST(Mutex, ExcludesOtherThreads) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 20'000;
  Counter counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&counter] {
      for (int round = 0; round < kRounds; ++round) {
        MutexLock lock(counter.mu);
        const int before = counter.count;
        if (round % 64 == 0) std::this_thread::yield();  // others find it held
        counter.count = before + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(counter.mu);
  EXPECT_EQ(counter.count, kThreads * kRounds);
}

TEST(Mutex, IsTakenByOneThreadThatTries) {
  Mutex mu;
  if (!mu.TryLock()) FAIL() << "it is free";
  std::thread([&mu] {
    const bool taken = mu.TryLock();
    EXPECT_FALSE(taken);
    if (taken) mu.Unlock();
  }).join();
  mu.Unlock();
  if (!mu.TryLock()) FAIL() << "it is free again";
  mu.Unlock();
}

// All that sleep are woken, one by one, and the last one needs nobody.
TEST(Mutex, WakesEachThreadThatSleeps) {
  for (int round = 0; round < 50; ++round) {
    Mutex mu;
    std::atomic<int> came{0}, passed{0};
    mu.Lock();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        ++came;
        MutexLock lock(mu);
        ++passed;
      });
    }
    while (came < 4) std::this_thread::yield();
    EXPECT_EQ(passed, 0);
    mu.Unlock();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(passed, 4);
  }
}

}  // namespace
}  // namespace curtail
