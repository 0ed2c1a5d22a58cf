// SPDX-License-Identifier: Apache-2.0
//
// The rules of fenced_order.h and O1 to O5 of order.h, over random classes, limits, stalls and ends. The scaffold is
// single-threaded, as an executor's mutex makes it; one test ends requests on threads (rule F5).
#include "curtail/fence/fenced_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/base/testing.h"
#include "curtail/fence/shares.h"

namespace curtail {
namespace {

constexpr uint8_t kA = Fence::kFirst, kB = Fence::kFirst + 1, kC = Fence::kFirst + 2;

class FencedTask final : public Task {
 public:
  explicit FencedTask(TaskKind* kind) : kind_(kind) {}
  void Run(const WaitHint&) override {}
  TaskKind* kind() override {
    if (on_kind) on_kind();
    return kind_;
  }
  bool abandoned() const override { return is_abandoned; }

  std::function<void()> on_kind;  // called when the order asks for its class
  bool is_abandoned = false;
  int came_out = 0;

 private:
  TaskKind* const kind_;
};

// An executor without threads: `threads` tasks run at once, until the test ends them.
class Scaffold {
 public:
  Scaffold(const FenceOptions& options, uint32_t threads, uint64_t present)
      : fence(options), order(MakeFencedOrder(&fence)), threads_(threads) {
    for (size_t i = 0; i < kinds_.size(); ++i) kinds_[i].set_path_class(static_cast<uint8_t>(i));
    fence.SetPresent(present);
    SetThreads(threads);
  }
  ~Scaffold() {
    TaskList left_over;
    order->TakeAll(&left_over);
  }

  void SetThreads(uint32_t threads) {
    threads_ = threads;
    order->SetThreads(threads);
    Poke();
  }
  void Poke() {
    TaskList none;
    order->Append(none);
  }
  FencedTask* Make(uint8_t path_class) { return &tasks.emplace_back(&kinds_[path_class]); }
  void Append(uint8_t path_class, int count) {
    TaskList list;
    for (int i = 0; i < count; ++i) list.Push(Make(path_class));
    Append(list);
  }
  void Append(TaskList& list) {
    list.Stamp(Now());
    order->Append(list);
    EXPECT_TRUE(list.empty());
  }

  // Runs what is ready, as long as a thread is free; what needs no permit ends at once.
  void Run() {
    while (running_count() < threads_ && order->ready() > 0) RunOne();
  }
  void RunOne() {
    const size_t ready = order->ready();
    const Order::Next next = order->Pop(Now());
    ASSERT_NE(next.task, nullptr) << "O3";
    ASSERT_LT(order->ready(), ready) << "O3";
    auto* const task = static_cast<FencedTask*>(next.task);
    ASSERT_EQ(++task->came_out, 1) << "O2";
    const uint8_t path_class = task->order_note();
    ran.push_back(path_class);
    shed_last = next.shed;
    if (next.shed) {
      ++shed;
    } else if (path_class != Fence::kLocal) {
      ++running[path_class];
    }
  }
  void End(uint8_t path_class) {
    ASSERT_GT(running[path_class], 0u);
    --running[path_class];
    if (fence.End(path_class)) Poke();
  }
  size_t running_count() const {
    size_t sum = 0;
    for (const size_t n : running) sum += n;
    return sum;
  }
  FenceClassStats Stats(uint8_t path_class) const { return fence.Sample(path_class); }

  Fence fence;
  std::unique_ptr<Order> order;
  std::deque<FencedTask> tasks;
  std::array<size_t, Fence::kMaxClasses> running{};
  std::vector<uint8_t> ran;  // the classes of what came out, in order
  size_t shed = 0;
  bool shed_last = false;

 private:
  uint32_t threads_;
  std::array<TaskKind, Fence::kMaxClasses> kinds_;
};

constexpr uint64_t kAB = 1u << kA | 1u << kB;

TEST(FencedOrder, GivesAStalledClassItsPermitsAndNoMore) {
  Scaffold s({.mode = FenceMode::kStrict, .max_waiting = 5}, 8, kAB);
  s.Append(kA, 20);
  s.Run();
  EXPECT_EQ(s.running[kA], 4u);
  EXPECT_EQ(s.Stats(kA).waiting, 5u);
  EXPECT_EQ(s.Stats(kA).refused, 11u);
  EXPECT_EQ(s.shed, 11u);
  EXPECT_EQ(s.Stats(kA).queued, 5u);
  for (int i = 0; i < 100; ++i) {
    s.Append(kB, 1);
    s.Run();
    ASSERT_EQ(s.running[kB], 1u);
    s.End(kB);
  }
  EXPECT_EQ(s.Stats(kB).queued, 0u);
  EXPECT_GE(s.fence.retry_after_ms(kA), 1u);
}

TEST(FencedOrder, ReturnsAPermitToTheClassThatWaits) {
  Scaffold s({.mode = FenceMode::kStrict}, 8, kAB);
  s.Append(kA, 6);
  s.Run();
  ASSERT_EQ(s.running[kA], 4u);
  s.End(kA);
  EXPECT_EQ(s.order->ready(), 1u);
  s.Run();
  EXPECT_EQ(s.running[kA], 4u);
  EXPECT_EQ(s.Stats(kA).waiting, 1u);
}

// The race of F5, step by step: a request ends when its class holds a task back, and has not been named yet.
TEST(FencedOrder, SeesAPermitThatComesBackDuringAnAppend) {
  for (const FenceMode mode : {FenceMode::kStrict, FenceMode::kBorrow}) {
    Scaffold s({.mode = mode}, 8, kAB);
    s.Append(kA, 7);
    s.Run();
    while (s.Stats(kA).waiting > 0) s.End(kA), s.Run();
    const size_t before = s.running[kA];
    TaskList list;
    list.Push(s.Make(kA));
    FencedTask* const next = s.Make(kB);
    next->on_kind = [&] {
      --s.running[kA];
      EXPECT_FALSE(s.fence.End(kA)) << "it sees no task that waits";
    };
    list.Push(next);
    s.Append(list);
    EXPECT_EQ(s.Stats(kA).waiting, 0u) << "so the order sees the permit";
    s.Run();
    EXPECT_EQ(s.running[kA], before);
    EXPECT_EQ(s.running[kB], 1u);
  }
}

TEST(FencedOrder, LendsIdlePermitsButTheHalfThatAClassKeeps) {
  Scaffold s({.mode = FenceMode::kBorrow}, 8, kAB);  // 7 permits: 4 and 3
  s.Append(kA, 20);
  s.Run();
  EXPECT_EQ(s.running[kA], 5u) << "its 4, and one of B's 3";
  EXPECT_EQ(s.Stats(kA).borrowed, 1u);
  s.Append(kB, 5);
  s.Run();
  EXPECT_EQ(s.running[kB], 2u) << "what it keeps";
  s.End(kA);
  s.Run();
  EXPECT_EQ(s.running[kB], 3u) << "the lender comes first";
  EXPECT_EQ(s.running[kA], 4u);
  s.End(kA);
  s.Run();
  EXPECT_EQ(s.running[kA], 4u) << "no more than its own";
  s.End(kB), s.End(kB), s.End(kB);
  s.Run();
  EXPECT_EQ(s.running[kB], 2u) << "the last two of five";
  EXPECT_EQ(s.running[kA], 5u) << "and idle again";
}

TEST(FencedOrder, RunsLocalTasksFirstAndAtMostEightInARow) {
  Scaffold s({.mode = FenceMode::kStrict}, 32, kAB);
  TaskList list;
  for (int i = 0; i < 2; ++i) list.Push(s.Make(kA));
  for (int i = 0; i < 20; ++i) list.Push(s.Make(Fence::kLocal));
  s.Append(list);
  s.Run();
  ASSERT_EQ(s.ran.size(), 22u);
  EXPECT_EQ(std::count(s.ran.begin(), s.ran.begin() + 8, Fence::kLocal), 8);
  EXPECT_EQ(s.ran[8], kA);
  EXPECT_EQ(std::count(s.ran.begin() + 9, s.ran.begin() + 17, Fence::kLocal), 8);
  EXPECT_EQ(s.ran[17], kA);
}

TEST(FencedOrder, ServesClassesInTurn) {
  Scaffold s({.mode = FenceMode::kStrict}, 0, kAB);
  TaskList list;
  for (int i = 0; i < 3; ++i) list.Push(s.Make(kA));
  for (int i = 0; i < 3; ++i) list.Push(s.Make(kB));
  s.Append(list);
  while (s.order->ready() > 0) s.RunOne();
  EXPECT_THAT(s.ran, testing::ElementsAre(kA, kB, kA, kB, kA, kB));
}

TEST(FencedOrder, KeepsAThreadForLocalTasks) {
  for (const FenceMode mode : {FenceMode::kStrict, FenceMode::kBorrow}) {
    Scaffold s({.mode = mode}, 8, 1u << kA);
    s.Append(kA, 50);
    s.Run();
    EXPECT_EQ(s.running[kA], 7u);
    s.Append(Fence::kLocal, 3);
    s.Run();
    EXPECT_EQ(s.Stats(Fence::kLocal).begun, 3u);
    EXPECT_EQ(s.order->ready(), 0u);
  }
}

TEST(FencedOrder, ShrinksLazily) {
  Scaffold s({.mode = FenceMode::kStrict}, 8, kAB);
  s.Append(kA, 6);
  s.Run();
  s.fence.SetLimit(kA, 2);
  s.Poke();
  EXPECT_EQ(s.running[kA], 4u);
  s.End(kA), s.End(kA);
  EXPECT_EQ(s.order->ready(), 0u);
  s.End(kA);
  EXPECT_EQ(s.order->ready(), 1u);
  s.fence.SetLimit(kA, 4);
  s.Poke();
  EXPECT_EQ(s.order->ready(), 2u);
}

TEST(FencedOrder, KeepsAFenceThroughAChangeOfThreads) {
  Scaffold s({.mode = FenceMode::kBorrow, .permits = 64}, 0, kAB);
  s.Append(kA, 60);
  while (s.order->ready() > 0) s.RunOne();
  EXPECT_GT(s.running[kA], 29u) << "57 permits, and it borrows";
  s.SetThreads(8);
  EXPECT_EQ(s.order->ready(), 0u);
  s.Append(kB, 3);
  EXPECT_EQ(s.order->ready(), 2u) << "what B never lends, although A uses more than there are";
  while (s.order->ready() > 0) s.RunOne();
  s.SetThreads(0);
  EXPECT_EQ(s.order->ready(), 1u);
}

TEST(FencedOrder, GivesNoPermitToAnAbandonedTask) {
  Scaffold s({.mode = FenceMode::kStrict, .max_waiting = 2}, 8, kAB);
  s.Append(kA, 6);
  s.Run();
  for (FencedTask& task : s.tasks) task.is_abandoned = task.came_out == 0;
  s.Append(kA, 1);
  EXPECT_EQ(s.Stats(kA).refused, 0u) << "its queue is full of abandoned ones";
  s.End(kA);
  s.Run();
  EXPECT_EQ(s.shed, 2u);
  EXPECT_EQ(s.running[kA], 4u);
}

TEST(FencedOrder, HandsOutEveryTaskWhenThePoolsStop) {
  Scaffold s({.mode = FenceMode::kStrict, .max_waiting = 1}, 8, kAB);
  s.Append(kA, 9);
  s.Append(Fence::kLocal, 1);
  EXPECT_EQ(s.order->size(), 10u);
  TaskList left_over;
  s.order->TakeAll(&left_over);
  EXPECT_EQ(left_over.size(), 10u);
  EXPECT_EQ(s.order->size(), 0u);
  while (left_over.Pop() != nullptr) {
  }
}

TEST(DryRunOrder, RunsInTurnAndCountsWhatAFenceWouldDo) {
  Scaffold s({.mode = FenceMode::kDryRun, .max_waiting = 2}, 8, kAB);
  s.Append(kA, 7);
  s.Append(Fence::kLocal, 1);
  s.Run();
  EXPECT_EQ(s.ran, (std::vector<uint8_t>{kA, kA, kA, kA, kA, kA, kA, Fence::kLocal}));
  EXPECT_EQ(s.Stats(kA).begun, 7u);
  EXPECT_EQ(s.Stats(kA).queued, 2u);
  EXPECT_EQ(s.Stats(kA).refused, 1u);
  EXPECT_EQ(s.shed, 0u);
  s.End(kA);
  EXPECT_EQ(s.Stats(kA).in_use, 6u);
}

// A random life of one order. The properties: those of CheckAll(), and each task comes out once.
class RandomLife {
 public:
  RandomLife(uint64_t seed, FenceMode mode)
      : rng_(seed),
        mode_(mode),
        classes_(1 + static_cast<uint32_t>(rng_.Below(6))),
        threads_(2 + static_cast<uint32_t>(rng_.Below(30))),
        max_waiting_(1 + static_cast<uint32_t>(rng_.Below(20))),
        s_({.mode = mode, .max_waiting = max_waiting_}, threads_, Present()) {
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
      const bool first = s_.shed_last || s_.ran.back() == Fence::kLocal;
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
    size_t in_use = 0, shares = 0, waiting = 0, committed = 0;
    bool within = true;
    for (uint32_t i = 0; i < classes_; ++i) {
      const auto path_class = static_cast<uint8_t>(kA + i);
      const FenceClassStats stats = s_.Stats(path_class);
      ASSERT_GE(stats.in_use, s_.running[path_class]) << "begun without a permit";
      ASSERT_LE(stats.waiting, max_waiting_) << "F6";
      const uint64_t own = mode_ == FenceMode::kStrict ? stats.limit : (stats.limit + 1) / 2;
      if (stats.waiting > 0) {
        ASSERT_GE(stats.in_use, own) << "waits beside a free permit";
      }
      within = within && stats.in_use <= stats.limit;
      committed += std::max<uint64_t>(stats.in_use, own);
      in_use += stats.in_use, shares += stats.limit, waiting += stats.waiting;
    }
    ASSERT_EQ(s_.order->size() - s_.order->ready(), waiting);
    // Requests that began before limits shrank have ended.
    settled_ = settled_ || (mode_ == FenceMode::kStrict ? within : committed <= PermitsOf(threads_));
    if (classes_ > PermitsOf(threads_)) return;
    ASSERT_LE(shares, PermitsOf(threads_)) << "F4";
    if (!settled_) return;
    ASSERT_LE(in_use, PermitsOf(threads_)) << "the reserve";
    if (mode_ == FenceMode::kStrict) {
      ASSERT_TRUE(within);
    }
  }

  Rng rng_;
  const FenceMode mode_;
  const uint32_t classes_;
  uint32_t threads_;
  const uint32_t max_waiting_;
  Scaffold s_;
  uint8_t stalled_ = 0;
  bool settled_ = true;  // no request has a permit that a later limit would have denied
  int in_a_row_ = 0;
};

uint64_t SeedOfRun() {
  const char* const given = std::getenv("CURTAIL_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10)
                          : static_cast<uint64_t>(Now().time_since_epoch().count());
}

TEST(FencedOrder, KeepsItsRulesInARandomLife) {
  const uint64_t seed = SeedOfRun();
  std::cout << "seed " << seed << "\n";
  for (uint64_t i = 0; i < 150; ++i) {
    for (const FenceMode mode : {FenceMode::kStrict, FenceMode::kBorrow}) {
      SCOPED_TRACE(testing::Message() << "life " << i << " " << FenceModeName(mode));
      RandomLife(seed + i, mode).Live(300);
      if (HasFailure()) return;
    }
  }
}

// Threads take tasks under a mutex and end them without it, as an executor's do. No task waits while all permits are
// free: the one who looks second sees the other (F5).
void EndOnThreads(FenceMode mode) {
  constexpr int kTasks = 20'000;
  Scaffold s({.mode = mode, .max_waiting = 50}, 4, kAB | 1u << kC);
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
  EndOnThreads(FenceMode::kBorrow);
}

}  // namespace
}  // namespace curtail
