// SPDX-License-Identifier: Apache-2.0
//
// The rules of fenced_order.h over random classes, limits, stalls and ends, and over threads that race (rule F5).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/base/testing.h"
#include "curtail/fence/fenced_order_testing.h"
#include "curtail/fence/shares.h"

namespace curtail {
namespace {

// A random life of one order. The properties: those of CheckAll(), and each task comes out once.
class RandomLife {
 public:
  RandomLife(uint64_t seed, const QueueOptions& queue)
      : rng_(seed),
        classes_(1 + static_cast<uint32_t>(rng_.Below(6))),
        threads_(2 + static_cast<uint32_t>(rng_.Below(30))),
        max_waiting_(1 + static_cast<uint32_t>(rng_.Below(20))),
        s_({.mode = FenceMode::kStrict, .max_waiting = max_waiting_}, threads_, Present(), queue) {
    stalled_ = rng_.Below(4) == 0 ? 0 : RandomClass();
  }

  void Live(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      Step();
      CheckAll();
    }
    stalled_ = 0;
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (s_.order->size() > 0 && !testing::Test::HasFailure()) {  // none starves
      EndSome(1);
      RunSome();
      ASSERT_FALSE(deadline.Expired());
    }
    EXPECT_TRUE(std::all_of(s_.tasks.begin(), s_.tasks.end(), [](auto& t) { return t.came_out == 1; }));
  }

 private:
  uint64_t Present() const { return ((uint64_t{1} << classes_) - 1) << Fence::kFirst; }
  uint8_t RandomClass() { return static_cast<uint8_t>(Fence::kFirst + rng_.Below(classes_)); }

  void Step() {
    s_.now += std::chrono::microseconds(rng_.Below(4000));
    switch (rng_.Below(10)) {
      case 0:
        return ChangeLimits();
      case 1:
      case 2:
      case 3:
        return AppendSome();
      case 4:
      case 5:
      case 6:
        return EndSome(static_cast<int>(1 + rng_.Below(8)));
      case 7:
        if (!s_.tasks.empty()) s_.tasks[rng_.Below(s_.tasks.size())].is_abandoned = true;
        return;
      default:
        return RunSome();
    }
  }
  void ChangeLimits() {
    if (rng_.Below(2) == 0) {
      threads_ = 2 + static_cast<uint32_t>(rng_.Below(30));
      s_.SetThreads(threads_);
    } else {
      s_.fence.SetLimit(RandomClass(), 1 + static_cast<uint32_t>(rng_.Below(20)));
      s_.Poke();
    }
    settled_ = false;
  }
  void AppendSome() {
    TaskList list;
    for (uint64_t i = rng_.Below(12); i > 0; --i) {
      list.Push(s_.Make(rng_.Below(4) == 0 ? Fence::kLocal : RandomClass()));
    }
    s_.Append(list);
  }
  void EndSome(int count) {
    for (int i = 0; i < count; ++i) {
      const uint8_t path_class = RandomClass();
      if (path_class != stalled_ && s_.running[path_class] > 0) s_.End(path_class);
    }
  }
  void RunSome() {
    for (uint64_t i = rng_.Below(8) + 1; i > 0 && s_.order->ready() > 0; --i) {
      if (s_.running_count() >= threads_) return;
      const bool others = Granted() > 0;
      s_.RunOne();
      const bool first = s_.permit_last == Fence::kLocal;
      in_a_row_ = first && others ? in_a_row_ + 1 : 0;
      ASSERT_LE(in_a_row_, kLocalInARow) << "F7";
    }
  }
  // Tasks with a permit that no thread has taken.
  size_t Granted() const {
    size_t in_use = 0;
    for (uint32_t i = 0; i < classes_; ++i) in_use += s_.Stats(static_cast<uint8_t>(kA + i)).in_use;
    return in_use - s_.running_count();
  }

  void CheckAll() {
    size_t in_use = 0, shares = 0, waiting = 0;
    bool within = true;
    for (uint32_t i = 0; i < classes_; ++i) {
      const auto path_class = static_cast<uint8_t>(kA + i);
      const FenceClassStats stats = s_.Stats(path_class);
      ASSERT_GE(stats.in_use, s_.running[path_class]) << "begun without a permit";
      ASSERT_LE(stats.waiting, max_waiting_) << "F6";
      if (stats.waiting > 0) {
        ASSERT_GE(stats.in_use, stats.limit) << "waits beside a free permit";
      }
      within = within && stats.in_use <= stats.limit;
      in_use += stats.in_use, shares += stats.limit, waiting += stats.waiting;
    }
    ASSERT_EQ(s_.order->size() - s_.order->ready(), waiting);
    // Requests that began before limits shrank have ended.
    settled_ = settled_ || within;
    if (classes_ > PermitsOf(threads_)) return;
    ASSERT_LE(shares, PermitsOf(threads_)) << "F4";
    if (!settled_) return;
    ASSERT_LE(in_use, PermitsOf(threads_)) << "the reserve";
    ASSERT_TRUE(within);
  }

  Rng rng_;
  const uint32_t classes_;
  uint32_t threads_;
  const uint32_t max_waiting_;
  FenceScaffold s_;
  uint8_t stalled_ = 0;
  bool settled_ = true;  // no request has a permit that a later limit would have denied
  int in_a_row_ = 0;
};

TEST(FencedOrder, KeepsItsRulesInARandomLife) {
  const uint64_t seed = SeedOfRun();
  for (uint64_t i = 0; i < 150; ++i) {
    SCOPED_TRACE(testing::Message() << "life " << i);
    const QueueOptions queue{.shed = i % 2 == 0 ? ShedMode::kOff : ShedMode::kCodel,
                             .mode = i % 4 < 2 ? QueueMode::kFifo : QueueMode::kLifo};
    RandomLife(seed + i, queue).Live(300);
    if (HasFailure()) return;
  }
}

// Threads take tasks under a mutex and end them without it, as an executor's do. No task waits while all permits are
// free: the thread that looks second sees the other (F5).
void EndOnThreads(FenceMode mode) {
  constexpr int kTasks = 20'000;
  FenceScaffold s({.mode = mode, .max_waiting = 50}, 4, kAB | 1u << kC);
  std::mutex mu;
  int made = 0, running = 0;
  std::atomic<bool> stuck{false};
  const auto work = [&](uint8_t path_class) {
    std::unique_lock lock(mu);
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!stuck && !deadline.Expired()) {
      if (s.order->size() < 20 && made < kTasks) s.Append(path_class, 1), ++made;
      if (s.order->ready() == 0) {
        if (s.order->size() == 0 && made == kTasks) return;
        if (running == 0 && s.order->size() > 0) stuck = true;
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
        continue;
      }
      const Order::Next next = s.order->Pop(TimePoint());
      const uint8_t note = next.task->order_note();
      ++running;
      lock.unlock();
      const bool poke = !next.shed && s.fence.End(note);
      lock.lock();
      if (poke) s.Poke();
      --running;
    }
    stuck = true;
  };
  std::vector<std::thread> threads;
  for (const uint8_t path_class : {kA, kB, kC, Fence::kLocal}) threads.emplace_back(work, path_class);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(stuck) << "a task waits beside a free permit";
}

TEST(FencedOrder, LosesNoPermitWhenEndAndAppendRaceStress) {
  EndOnThreads(FenceMode::kStrict);
  EndOnThreads(FenceMode::kOn);
}

}  // namespace
}  // namespace curtail
