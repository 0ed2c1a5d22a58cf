// SPDX-License-Identifier: Apache-2.0
//
// Mutex and condition variable for handlers, under all schedules, on threads: on fibers their waits are those
// of a Parker all the same.
#include "curtail/exec/sync.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <utility>

#include "tests/model/scheduler.h"

namespace curtail {
namespace {

using model::Check;
using model::Explore;
using model::Outcome;

// Property: one holder at a time, and everybody gets it.
TEST(SyncModel, TheMutexExcludes) {
  const Outcome outcome = Explore({.preemptions = 3, .random_schedules = 1000}, [] {
    FiberMutex mutex;
    bool inside = false;
    const auto enter = [&] {
      std::lock_guard lock(mutex);
      Check(!std::exchange(inside, true), "two holders");
      model::Point("inside", nullptr);
      inside = false;
    };
    std::thread a(enter), b(enter);
    enter();
    a.join(), b.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// Property: a waiter that looks at its condition under the mutex sees each change that was notified.
TEST(SyncModel, NoNotificationIsLost) {
  for (const bool all : {false, true}) {
    const Outcome outcome = Explore({.preemptions = 3, .random_schedules = 1000}, [all] {
      FiberMutex mutex;
      FiberCondition changed;
      int tokens = 0;
      const auto take = [&] {
        std::unique_lock lock(mutex);
        while (tokens == 0) changed.wait(lock);
        --tokens;
      };
      std::thread a(take), b(take);
      if (all) {
        {
          std::lock_guard lock(mutex);
          tokens = 2;
        }
        changed.notify_all();
      } else {
        for (int i = 0; i < 2; ++i) {
          {
            std::lock_guard lock(mutex);
            ++tokens;
          }
          changed.notify_one();
        }
      }
      a.join(), b.join();
    });
    EXPECT_TRUE(outcome.ok) << outcome.report;
  }
}

// Property: a waiter that gives up at its deadline does not take a notification away from another.
TEST(SyncModel, ADeadlineTakesNoNotificationAway) {
  bool expired = false;
  const Outcome outcome = Explore({.preemptions = 3, .random_schedules = 1000}, [&] {
    FiberMutex mutex;
    FiberCondition changed;
    bool token = false;
    const Deadline deadline = Deadline::At(TimePoint(Nanos(model::Moment(1000))));
    std::thread patient([&] {
      std::unique_lock lock(mutex);
      while (!token) changed.wait(lock);
    });
    std::thread hasty([&] {
      std::unique_lock lock(mutex);
      if (token) return;
      if (changed.wait_until(lock, deadline)) {
        changed.notify_one();  // it was not for this one alone
      } else {
        expired = true;
        Check(deadline.Expired(), "gave up before its deadline");
      }
    });
    {
      std::lock_guard lock(mutex);
      token = true;
    }
    changed.notify_one();
    patient.join(), hasty.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
  EXPECT_TRUE(expired);
}

}  // namespace
}  // namespace curtail
