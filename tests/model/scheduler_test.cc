// SPDX-License-Identifier: Apache-2.0
//
// Tests of the checker itself: it finds the faults that it is there for, and all outcomes of small programs.
#include "tests/model/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

namespace curtail {
namespace {

using model::Explore;
using model::Outcome;

std::string FirstWord(const Outcome& outcome) { return outcome.failure.substr(0, outcome.failure.find(':')); }

TEST(Scheduler, FindsEveryOutcomeOfTheStoreBufferProgram) {
  std::set<std::string> outcomes;
  const Outcome outcome = Explore({.preemptions = 2}, [&] {
    std::atomic<int> x = 0, y = 0;
    int seen_x = 0, seen_y = 0;
    std::thread a([&] { x.store(1), seen_y = y.load(); });
    std::thread b([&] { y.store(1), seen_x = x.load(); });
    a.join(), b.join();
    outcomes.insert(std::to_string(seen_x) + std::to_string(seen_y));
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
  // All of them but 00, which sequential consistency excludes.
  EXPECT_EQ(outcomes, (std::set<std::string>{"01", "10", "11"}));
}

// With an order that is too weak a load may miss the other thread's store; with seq_cst, all four, it may not.
TEST(Scheduler, FindsTheOutcomesOfWeakerOrders) {
  constexpr std::memory_order kStrong = std::memory_order_seq_cst, kWeak = std::memory_order_acq_rel;
  const auto release = [](std::memory_order o) { return o == kWeak ? std::memory_order_release : o; };
  const auto acquire = [](std::memory_order o) { return o == kWeak ? std::memory_order_acquire : o; };
  for (const std::memory_order stores : {kStrong, kWeak}) {
    for (const std::memory_order loads : {kStrong, kWeak}) {
      std::set<std::string> outcomes;
      const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 1000, .stale_reads = 1}, [&] {
        std::atomic<int> x = 0, y = 0;
        int seen_x = 0, seen_y = 0;
        std::thread a([&] { x.store(1, release(stores)), seen_y = y.load(acquire(loads)); });
        std::thread b([&] { y.store(1, release(stores)), seen_x = x.load(acquire(loads)); });
        a.join(), b.join();
        outcomes.insert(std::to_string(seen_x) + std::to_string(seen_y));
      });
      EXPECT_TRUE(outcome.ok) << outcome.report;
      EXPECT_EQ(outcomes.contains("00"), stores == kWeak || loads == kWeak);
    }
  }
}

// Nothing is stale that the reader must know of: by an acquire, by a lock, because it saw it before, or as its own.
TEST(Scheduler, NoLoadMissesWhatTheThreadMustKnow) {
  const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 1000, .stale_reads = 2}, [&] {
    std::atomic<int> data = 0, flag = 0;
    std::mutex mu;
    std::thread writer([&] {
      data.store(1, std::memory_order_relaxed);
      flag.store(1, std::memory_order_release);
      const std::lock_guard lock(mu);
      data.store(2, std::memory_order_relaxed);
    });
    const bool told = flag.load(std::memory_order_acquire) == 1;
    const int first = data.load(std::memory_order_relaxed);
    model::Check(!told || first >= 1, "a stale read in spite of acquire");
    model::Check(data.load(std::memory_order_relaxed) >= first, "a value that was seen is gone");
    bool late;
    {
      const std::lock_guard lock(mu);
      late = data.Peek() == 2;
    }
    model::Check(!late || data.load(std::memory_order_relaxed) == 2, "a stale read in spite of a lock");
    data.fetch_add(1, std::memory_order_relaxed);
    model::Check(data.load(std::memory_order_relaxed) != 0, "a stale read of its own write");
    writer.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// Two threads of two steps each: the orders are the ways to merge them.
TEST(Scheduler, ExploresEveryOrder) {
  std::multiset<std::string> orders;
  const auto program = [&] {
    std::string order;
    std::atomic<int> at = 0;
    const auto two_steps = [&](char name) {
      at.load(), order += name;
      at.load(), order += name;
    };
    std::thread a([&] { two_steps('a'); }), b([&] { two_steps('b'); });
    a.join(), b.join();
    orders.insert(order);
  };
  EXPECT_TRUE(Explore({.preemptions = 4}, program).ok);
  EXPECT_EQ(std::set<std::string>(orders.begin(), orders.end()).size(), 6u);
  orders.clear();
  EXPECT_TRUE(Explore({.preemptions = 0}, program).ok);
  EXPECT_EQ(std::set<std::string>(orders.begin(), orders.end()), (std::set<std::string>{"aabb", "bbaa"}));
}

TEST(Scheduler, FindsALostUpdateAndReplaysIt) {
  const auto program = [] {
    std::atomic<int> count = 0;
    std::thread other([&] { count.store(count.load() + 1); });
    count.store(count.load() + 1);
    other.join();
    model::Check(count.load() == 2, "an update was lost");
  };
  const Outcome found = Explore({.preemptions = 1}, program);
  ASSERT_FALSE(found.ok);
  EXPECT_NE(found.failure.find("an update was lost"), std::string::npos);
  const Outcome again = model::Replay({}, found.replay, program);
  EXPECT_EQ(again.failure, found.failure);
  EXPECT_EQ(again.replay, found.replay);
  EXPECT_TRUE(model::Replay({}, "none", program).ok);
}

TEST(Scheduler, FindsALockOrderInversion) {
  const Outcome outcome = Explore({}, [] {
    std::mutex a, b;
    std::thread other([&] { std::scoped_lock first(b), second(a); });
    {
      std::lock_guard first(a);
      std::lock_guard second(b);
    }
    other.join();
  });
  EXPECT_EQ(FirstWord(outcome), "deadlock") << outcome.report;
}

TEST(Scheduler, FindsUseAfterTheEnd) {
  const Outcome outcome = Explore({}, [] {
    std::optional<model::Fresh<std::atomic<bool>>> flag(false);
    std::atomic<bool>* const address = flag->get();
    std::thread other([address] { address->store(true), address->load(); });
    while (!address->load()) std::this_thread::yield();
    flag.reset();
    other.join();
  });
  EXPECT_NE(outcome.failure.find("after its end"), std::string::npos) << outcome.report;
}

TEST(Scheduler, FindsALivelock) {
  const Outcome outcome = Explore({}, [] {
    std::atomic<bool> never = false;
    std::thread other([&] {
      while (!never.load()) std::this_thread::yield();
    });
    while (!never.load()) std::this_thread::yield();
    other.join();
  });
  EXPECT_EQ(FirstWord(outcome), "livelock") << outcome.report;
}

// Property: a wait until a moment is seen to end both ways.
TEST(Scheduler, TimeMayPassAtAnyPoint) {
  std::set<bool> expired;
  const Outcome outcome = Explore({.preemptions = 1}, [&] {
    const int64_t moment = model::Moment(1000);
    std::atomic<bool> done = false;
    std::thread other([&] { done.store(true); });
    expired.insert(!model::Block("wait", nullptr, [&] { return done.Peek(); }, moment));
    other.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
  EXPECT_EQ(expired, (std::set<bool>{false, true}));
}

// Needs three preemptions at the right places: beyond the search's bound, found at random.
TEST(Scheduler, RandomSchedulesGoBeyondTheBound) {
  const auto program = [] {
    std::atomic<int> turn = 0;
    std::thread other([&] {
      for (int want : {1, 3}) {
        int expected = want;
        turn.compare_exchange_strong(expected, want + 1);
      }
    });
    for (int want : {0, 2, 4}) {
      int expected = want;
      turn.compare_exchange_strong(expected, want + 1);
    }
    other.join();
    model::Check(turn.load() != 5, "all turns taken");
  };
  EXPECT_TRUE(Explore({.preemptions = 2}, program).ok);
  EXPECT_FALSE(Explore({.preemptions = 2, .random_schedules = 20'000}, program).ok);
}

// How not to wait ---------------------------------------------------------------------------------------

// A flag that is reset: the notification between the look and the reset is gone.
class ResettableFlag {
 public:
  void Wait() {
    flag_.store(0);
    model::FutexWait(&flag_, [this] { return flag_.Peek() != 0; }, model::kForever);
  }
  void Notify() {
    flag_.store(1);
    model::FutexWake(&flag_, 1);
  }

 private:
  std::atomic<int> flag_ = 0;
};

// A sleep that does not look at the epoch again.
class NoEpoch {
 public:
  void Wait() {
    sleeping_.store(true);
    model::FutexWait(&sleeping_, [] { return false; }, model::kForever);
    sleeping_.store(false);
  }
  void Notify() {
    if (sleeping_.load()) model::FutexWake(&sleeping_, 1);
  }

 private:
  std::atomic<bool> sleeping_ = false;
};

template <class BrokenParker>
void WaitForACondition() {
  BrokenParker parker;
  std::atomic<bool> condition = false;
  std::thread waiter([&] {
    while (!condition.load()) parker.Wait();
  });
  condition.store(true);
  parker.Notify();
  waiter.join();
}

TEST(Scheduler, FindsTheLostWakeUpOfAResettableFlag) {
  EXPECT_EQ(FirstWord(Explore({.preemptions = 2}, WaitForACondition<ResettableFlag>)), "deadlock");
}

TEST(Scheduler, FindsTheLostWakeUpOfAWaitWithoutEpoch) {
  EXPECT_EQ(FirstWord(Explore({.preemptions = 2}, WaitForACondition<NoEpoch>)), "deadlock");
}

}  // namespace
}  // namespace curtail
