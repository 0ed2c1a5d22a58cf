// SPDX-License-Identifier: Apache-2.0
//
// Stand-ins for threads that are held up, as `auto` has them.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "curtail/base/cpus.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/executor/executor_testing.h"
#include "curtail/exec/internal/guard_pace.h"

namespace curtail {
namespace {

// Sleeps where curtail does not see it, until `all` tasks have started.
class KindTask final : public Task {
 public:
  KindTask(TaskKind* kind, Counter* started, int all, Counter* met)
      : kind_(kind), meeting_(started, all, met) {}
  void Run(const WaitHint& hint) override { meeting_.Run(hint); }
  TaskKind* kind() override { return kind_; }

 private:
  TaskKind* const kind_;
  MeetingTask meeting_;
};

class StandInsTest : public testing::Test {
 protected:
  static constexpr int kThreads = 12;

  std::unique_ptr<Executor> Start() {
    ExecutorOptions options{.max_threads = kThreads};
    options.on_blocking = [this](const TaskKind&) { blocking_.Add(); };
    return std::make_unique<Executor>(Config::Auto(), options, &receiver_, &receiver_, nullptr);
  }
  // Threads that have a role, once they are `wanted` or after the longest wait.
  static int Holders(Executor& executor, int wanted) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    int holders = 0;
    do {
      std::this_thread::yield();
      holders = 0;
      for (const ExecutorStats::Pool& pool : executor.Sample().pools) holders += pool.threads;
    } while (holders != wanted && !deadline.Expired());
    return holders;
  }

  FakeReceiver receiver_;
  Counter started_, met_, blocking_;
};

TEST_F(StandInsTest, ComeForThreadsThatSleepInATask) {
  std::vector<MeetingTask> tasks(kThreads, MeetingTask(&started_, kThreads, &met_));
  const auto executor = Start();
  for (MeetingTask& task : tasks) receiver_.Feed(&task);
  EXPECT_TRUE(met_.Await(kThreads));
  EXPECT_EQ(Holders(*executor, 1), 1) << "they go when the threads are back";
  CountingTask after(&started_);
  receiver_.Feed(&after);
  EXPECT_TRUE(started_.Await(kThreads + 1));
}

// Computes for several looks of the guard, then sleeps until `all` have started.
class ComputingMeetingTask final : public Task {
 public:
  ComputingMeetingTask(Counter* started, int all, Counter* met, Nanos computes = 5 * GuardPace::kShort)
      : meeting_(started, all, met), computes_(computes) {}
  void Run(const WaitHint& hint) override {
    const Deadline deadline = Deadline::In(computes_);
    while (!deadline.Expired()) {
    }
    meeting_.Run(hint);
  }

 private:
  MeetingTask meeting_;
  const Nanos computes_;
};

TEST_F(StandInsTest, ComeForThreadsThatSleepAfterTheyHaveComputed) {
  std::vector<ComputingMeetingTask> tasks(kThreads, ComputingMeetingTask(&started_, kThreads, &met_));
  const auto executor = Start();
  for (ComputingMeetingTask& task : tasks) receiver_.Feed(&task);
  EXPECT_TRUE(met_.Await(kThreads));
}

TEST_F(StandInsTest, TasksOfAKindThatBlocksHaveThreadsOfTheirOwn) {
  TaskKind kind;
  constexpr int kAll = kThreads - 1;  // all but the one that receives
  std::vector<KindTask> tasks(kAll, KindTask(&kind, &started_, kAll, &met_));
  const auto executor = Start();
  for (KindTask& task : tasks) receiver_.Feed(&task);
  EXPECT_TRUE(met_.Await(kAll));
  EXPECT_TRUE(kind.blocks());
  EXPECT_GE(kind.held_up(), 1u);
  EXPECT_EQ(blocking_.count(), 1);
  // The receiving thread is free while all others sleep.
  Counter started, met;
  std::vector<KindTask> more(kAll, KindTask(&kind, &started, kAll + 1, &met));
  for (KindTask& task : more) receiver_.Feed(&task);
  ASSERT_TRUE(started.Await(kAll));
  CountingTask quick(&started);
  receiver_.Feed(&quick);
  EXPECT_TRUE(met.Await(kAll));
}

TEST_F(StandInsTest, MoreBlockingTasksThanThreadsTakeTurns) {
  TaskKind kind;
  ASSERT_TRUE(kind.HeldUp(/*asleep=*/true));
  std::vector<KindTask> tasks(10 * kThreads, KindTask(&kind, &started_, 1, &met_));
  const auto executor = Start();
  for (KindTask& task : tasks) receiver_.Feed(&task);
  EXPECT_TRUE(met_.Await(10 * kThreads));
}

TEST_F(StandInsTest, OneThreadAloneRunsWhatBlocksToo) {
  TaskKind kind;
  ASSERT_TRUE(kind.HeldUp(/*asleep=*/true));
  std::vector<KindTask> tasks(10, KindTask(&kind, &started_, 1, &met_));
  Executor executor(Config::Auto(), {.max_threads = 1}, &receiver_, &receiver_, nullptr);
  for (KindTask& task : tasks) receiver_.Feed(&task);
  EXPECT_TRUE(met_.Await(10));
}

// Computes until another task has run, for `longest`; lets other threads of the machine go first.
class ComputingTask final : public Task {
 public:
  ComputingTask(std::atomic<bool>* end, Nanos longest) : end_(end), longest_(longest) {}
  void Run(const WaitHint&) override {
    const Deadline deadline = Deadline::In(longest_);
    while (!end_->load() && !deadline.Expired()) std::this_thread::yield();
    met_ = end_->load();
  }
  // True if the other ran meanwhile. For when both have.
  bool met() const { return met_; }

 private:
  std::atomic<bool>* const end_;
  const Nanos longest_;
  // Atomic: written by the thread that ran it, read by the test.
  std::atomic<bool> met_{false};
};

class EndingTask final : public Task {
 public:
  EndingTask(std::atomic<bool>* end, Counter* ran) : end_(end), ran_(ran) {}
  void Run(const WaitHint&) override {
    end_->store(true);
    ran_->Add();
  }

 private:
  std::atomic<bool>* const end_;
  Counter* const ran_;
};

TEST_F(StandInsTest, ComeForThreadsThatComputeIfThereAreCpus) {
  // On one CPU a stand-in would only take turns with the thread that computes, so none comes.
  const bool comes = UsableCpus() > 1;
  std::atomic<bool> end{false};
  ComputingTask computing(&end, comes ? kMaxTestWait : std::chrono::milliseconds(50));
  EndingTask ending(&end, &met_);
  auto executor = Start();
  receiver_.Feed(&computing);
  receiver_.Feed(&ending);
  EXPECT_TRUE(met_.Await(1));
  EXPECT_EQ(Holders(*executor, 1), 1);
  executor.reset();
  EXPECT_EQ(computing.met(), comes);
}

// On a busy machine the thread gets less than half of a CPU. Otherwise what waits would wait for the end of the run.
TEST_F(StandInsTest, ComeForThreadsThatComputeForLongBesideOthers) {
  if (UsableCpus() == 1) return;
  std::atomic<bool> end{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 4 * UsableCpus(); ++i) {
    others.emplace_back([&end] {
      while (!end.load()) {
      }
    });
  }
  ComputingTask computing(&end, kMaxTestWait);
  EndingTask ending(&end, &met_);
  auto executor = Start();
  receiver_.Feed(&computing);
  receiver_.Feed(&ending);
  EXPECT_TRUE(met_.Await(1));
  executor.reset();
  for (std::thread& other : others) other.join();
  EXPECT_TRUE(computing.met());
}

TEST_F(StandInsTest, StopHandsBackWhatWaitsForAThread) {
  TaskKind kind;
  ASSERT_TRUE(kind.HeldUp(/*asleep=*/true));
  std::vector<KindTask> tasks(kThreads, KindTask(&kind, &started_, kThreads + 1, &met_));
  auto executor = Start();
  for (KindTask& task : tasks) receiver_.Feed(&task);
  ASSERT_TRUE(started_.Await(kThreads - 1));
  TaskList left_over;
  EXPECT_FALSE(executor->Stop(Deadline::In(Nanos(1)), &left_over));
  EXPECT_TRUE(left_over.empty()) << "what waits for a thread of its own runs before the end";
  started_.Add();
  started_.Add();
  EXPECT_TRUE(executor->Stop(Deadline::In(kMaxTestWait), &left_over));
  EXPECT_EQ(met_.count(), kThreads);
}

TEST_F(StandInsTest, ASwitchWhileThreadsAreHeldUpLeavesNone) {
  std::vector<MeetingTask> tasks(4, MeetingTask(&started_, 5, &met_));
  const auto executor = Start();
  for (MeetingTask& task : tasks) receiver_.Feed(&task);
  ASSERT_TRUE(started_.Await(4));
  ASSERT_TRUE(executor->SwitchTo(*Config::Parse("SDB1-2")).ok());
  MeetingTask fifth(&started_, 5, &met_);
  receiver_.Feed(&fifth);
  EXPECT_TRUE(met_.Await(5));
  EXPECT_EQ(Holders(*executor, 3), 3);
  ASSERT_TRUE(executor->SwitchTo(Config::Auto()).ok());
  EXPECT_EQ(Holders(*executor, 1), 1);
}

// The task computes until the guard has looked at a config without stand-ins, and sleeps.
TEST_F(StandInsTest, ComeForAThreadThatSleptBeforeTheSwitch) {
  const auto executor = Start();
  ASSERT_TRUE(executor->SwitchTo(*Config::Parse("FIB1")).ok());
  ComputingMeetingTask first(&started_, 2, &met_, 3 * GuardPace::kLong);
  receiver_.Feed(&first);
  ASSERT_TRUE(started_.Await(1));
  ASSERT_TRUE(executor->SwitchTo(Config::Auto()).ok());
  MeetingTask second(&started_, 2, &met_);
  receiver_.Feed(&second);
  EXPECT_TRUE(met_.Await(2));
}

TEST(TaskKind, BlocksAfterARowOfSleepsAndNoMoreAfterALongerRowWithout) {
  TaskKind kind;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(kind.Ran(true));
  EXPECT_FALSE(kind.Ran(false));  // begins anew
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(kind.Ran(true));
  EXPECT_FALSE(kind.blocks());
  EXPECT_TRUE(kind.Ran(true));
  EXPECT_TRUE(kind.blocks());
  EXPECT_FALSE(kind.HeldUp(true)) << "it was known";
  for (int i = 0; i < 63; ++i) EXPECT_FALSE(kind.Ran(false));
  EXPECT_TRUE(kind.blocks());
  EXPECT_FALSE(kind.Ran(false));
  EXPECT_FALSE(kind.blocks());
  EXPECT_FALSE(kind.HeldUp(false)) << "it computes";
  EXPECT_FALSE(kind.blocks());
  EXPECT_EQ(kind.held_up(), 2u);
}

// Else a server under overload, where threads wait for each other's locks, would fill its log.
TEST(TaskKind, TellsThatItBlocksAFewTimesOnly) {
  TaskKind kind;
  int told = 0;
  for (int i = 0; i < 100; ++i) {
    told += kind.HeldUp(true);
    ASSERT_TRUE(kind.blocks());
    for (int run = 0; run < 64; ++run) kind.Ran(false);
    ASSERT_FALSE(kind.blocks());
  }
  EXPECT_EQ(told, 7) << "1, 2, 4, ... 64";
}

}  // namespace
}  // namespace curtail
