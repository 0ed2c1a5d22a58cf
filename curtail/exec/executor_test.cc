// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "curtail/base/cpus.h"
#include "curtail/base/rng.h"
#include "curtail/base/testing.h"
#include "curtail/exec/blocking.h"

namespace curtail {
namespace {

// Counts tasks run and lets the test wait for a number of them.
class Counter {
 public:
  void Add() {
    std::lock_guard lock(mu_);
    ++count_;
    cv_.notify_all();
  }
  bool Await(int n) {
    std::unique_lock lock(mu_);
    return cv_.wait_for(lock, kMaxTestWait, [&] { return count_ >= n; });
  }
  int count() {
    std::lock_guard lock(mu_);
    return count_;
  }

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  int count_ = 0;
};

class CountingTask final : public Task {
 public:
  explicit CountingTask(Counter* counter) : counter_(counter) {}
  void Run(const WaitHint&) override { counter_->Add(); }

 private:
  Counter* const counter_;
};

// Runs until others have run, and waits for nothing.
class LoopingTask final : public Task {
 public:
  LoopingTask(Counter* others, int count, Counter* ended) : others_(others), count_(count), ended_(ended) {}
  void Run(const WaitHint&) override {
    const Deadline end = Deadline::In(kMaxTestWait);
    while (others_->count() < count_ && !end.Expired()) Fiber::YieldIfLong();
    ended_->Add();
  }

 private:
  Counter* const others_;
  const int count_;
  Counter* const ended_;
};

// Waits inside Run() until `all` tasks have started: only as many threads as tasks can satisfy it.
class MeetingTask final : public Task {
 public:
  MeetingTask(Counter* started, int all, Counter* met) : started_(started), all_(all), met_(met) {}
  void Run(const WaitHint&) override {
    started_->Add();
    if (started_->Await(all_)) met_->Add();
  }

 private:
  Counter* const started_;
  const int all_;
  Counter* const met_;
};

// A network without sockets: what the test feeds is what Await() and Handle() bring.
class FakeReceiver final : public Receiver, public Outbox {
 public:
  void Feed(Task* task) {
    {
      MutexLock lock(mu_);
      fed_.Push(task);
    }
    poller_.Wake();
  }
  Poller& poller() override { return poller_; }
  void Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) override {
    EXPECT_FALSE(awaiting_.exchange(true)) << "two leaders at once";
    {
      MutexLock lock(mu_);
      if (!fed_.empty()) {
        awaiting_ = false;
        return;
      }
    }
    poller_.Wait(std::min(deadline, Deadline::In(kMaxTestWait)), spin, events);
    awaiting_ = false;
  }
  void Handle(const std::vector<Poller::Ready>&, TaskList* ready) override {
    MutexLock lock(mu_);
    ready->Append(fed_);
  }
  void Hold(uint32_t, std::shared_ptr<PollHandler>) override {}
  void FlushIfDue(uint32_t) override {}
  void Flush(uint32_t) override { flushes.Add(); }
  void Wake() override { poller_.Wake(); }

  Counter flushes;

 private:
  std::atomic<bool> awaiting_{false};
  Poller poller_;
  Mutex mu_;
  TaskList fed_ CURTAIL_GUARDED_BY(mu_);
};

std::string NameOf(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

class ExecutorTest : public testing::TestWithParam<const char*> {
 protected:
  const Config config_ = *Config::Parse(GetParam());
  FakeReceiver receiver_;
  Counter counter_;
};

TEST_P(ExecutorTest, RunsWhatIsReceived) {
  std::vector<CountingTask> tasks(100, CountingTask(&counter_));
  Executor executor(config_, {.max_threads = 0}, &receiver_, &receiver_, nullptr);
  for (CountingTask& task : tasks) receiver_.Feed(&task);
  EXPECT_TRUE(counter_.Await(100));
  EXPECT_TRUE(receiver_.flushes.Await(1));
}

TEST_P(ExecutorTest, RunsWhatOtherThreadsSubmit) {
  std::vector<CountingTask> tasks(1000, CountingTask(&counter_));
  Executor executor(config_, {.max_threads = 0}, &receiver_, &receiver_, nullptr);
  for (CountingTask& task : tasks) {
    TaskList list;
    list.Push(&task);
    executor.Submit(list);
  }
  EXPECT_TRUE(counter_.Await(1000));
}

TEST_P(ExecutorTest, UsesEveryThreadOfThePool) {
  const int runners = config_.workers > 0 ? config_.workers : config_.network;
  Counter met;
  std::vector<MeetingTask> tasks(runners, MeetingTask(&counter_, runners, &met));
  Executor executor(config_, {.max_threads = 0}, &receiver_, &receiver_, nullptr);
  for (MeetingTask& task : tasks) receiver_.Feed(&task);
  EXPECT_TRUE(met.Await(runners));
}

TEST_P(ExecutorTest, StopHandsBackWhatDidNotRun) {
  Counter never;
  const int runners = config_.workers > 0 ? config_.workers : config_.network;
  // Occupies every runner with a meeting that needs one more participant than there are threads.
  std::vector<MeetingTask> blockers(runners, MeetingTask(&counter_, runners + 1, &never));
  std::vector<CountingTask> rest(5, CountingTask(&never));
  Executor executor(config_, {.max_threads = 0}, &receiver_, &receiver_, nullptr);
  for (MeetingTask& task : blockers) receiver_.Feed(&task);
  ASSERT_TRUE(counter_.Await(runners));
  TaskList list;
  for (CountingTask& task : rest) list.Push(&task);
  executor.Submit(list);
  TaskList left_over;
  EXPECT_FALSE(executor.Stop(Deadline::In(Nanos(1)), &left_over));
  EXPECT_EQ(left_over.size(), 5u);
  counter_.Add();  // the participant that was missing
  EXPECT_TRUE(never.Await(runners));
}

class ExecutorFiberTest : public ExecutorTest {};
INSTANTIATE_TEST_SUITE_P(Models, ExecutorFiberTest,
                         testing::Values("FIB1", "FIP1", "FDB1-1", "FDP1-1", "auto"), NameOf);

// Property: requests that come while a fiber runs without a wait begin, and so do those that it kept from beginning.
TEST_P(ExecutorFiberTest, AFiberThatNeverWaitsKeepsNoRequestFromItsThread) {
  constexpr int kCount = 100;
  Counter ended;
  std::vector<LoopingTask> loops(3, LoopingTask(&counter_, kCount, &ended));
  std::vector<CountingTask> tasks(kCount, CountingTask(&counter_));
  Executor executor(config_, {.max_threads = 0}, &receiver_, &receiver_, nullptr);
  for (LoopingTask& loop : loops) receiver_.Feed(&loop);
  for (CountingTask& task : tasks) receiver_.Feed(&task);
  EXPECT_TRUE(counter_.Await(kCount));
  EXPECT_TRUE(ended.Await(3));
  EXPECT_EQ(counter_.count(), kCount);
}

TEST(ExecutorSwitch, RefusesWhatItCannotBe) {
  FakeReceiver receiver;
  Executor executor(*Config::Parse("SIB1"), {.max_threads = 4}, &receiver, &receiver, nullptr);
  ASSERT_EQ(executor.thread_count(), 4u);
  for (const char* text : {"SDB1-4", "SIB5", "FIB5", "AIB1-1"}) {
    EXPECT_EQ(executor.SwitchTo(*Config::Parse(text)).code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(executor.config().ToString(), "SIB1");
  EXPECT_TRUE(executor.SwitchTo(*Config::Parse("SDB1-3")).ok());
  EXPECT_EQ(executor.config().ToString(), "SDB1-3");
}

TEST(ExecutorSwitch, ANewPoolRunsWhileTheOldOnesThreadsAreBusy) {
  FakeReceiver receiver;
  Counter started, met;
  // The first task blocks the only in-line thread until the second, fed after the switch, has started too.
  MeetingTask first(&started, 2, &met), second(&started, 2, &met);
  Executor executor(*Config::Parse("SIB1"), {.max_threads = 8}, &receiver, &receiver, nullptr);
  receiver.Feed(&first);
  ASSERT_TRUE(started.Await(1));
  ASSERT_TRUE(executor.SwitchTo(*Config::Parse("SDB1-1")).ok());
  receiver.Feed(&second);
  EXPECT_TRUE(met.Await(2));
}

// How many threads sleep.
class SleepCounter final : public BlockingWatcher {
 public:
  void OnBlocking(int delta) override {
    std::lock_guard lock(mu_);
    asleep_ += delta;
    changes_ += 1;
    cv_.notify_all();
  }
  bool Await(int n) {
    std::unique_lock lock(mu_);
    return cv_.wait_for(lock, kMaxTestWait, [&] { return asleep_ == n; });
  }
  int changes() {
    std::lock_guard lock(mu_);
    return changes_;
  }

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  int asleep_ = 0;
  int changes_ = 0;
};

TEST(ExecutorBlocking, EachThreadThatSleepsIsCounted) {
  FakeReceiver receiver;
  SleepCounter sleeps;
  Counter started, met;
  MeetingTask first(&started, 2, &met), second(&started, 2, &met);
  {
    Executor executor(*Config::Parse("SDB1-2"), {.max_threads = 5, .watcher = &sleeps}, &receiver, &receiver,
                      nullptr);
    EXPECT_TRUE(sleeps.Await(5)) << "the two without a role as well";
    const int changes = sleeps.changes();
    receiver.Feed(&first);  // holds a worker up outside of curtail's waits
    ASSERT_TRUE(started.Await(1));
    EXPECT_TRUE(sleeps.Await(4));
    receiver.Feed(&second);
    EXPECT_TRUE(met.Await(2));
    EXPECT_TRUE(sleeps.Await(5));
    EXPECT_GT(sleeps.changes(), changes + 4);
  }
  EXPECT_TRUE(sleeps.Await(0));
}

TEST(ExecutorBlocking, APollerStopsWhenItIsToBlock) {
  FakeReceiver receiver;
  SleepCounter sleeps;
  Counter counter;
  CountingTask task(&counter);
  Executor executor(*Config::Parse("SIP1"), {.max_threads = 1, .watcher = &sleeps}, &receiver, &receiver,
                    nullptr);
  if (UsableCpus() < 2) {  // no thread may poll
    EXPECT_TRUE(sleeps.Await(1));
    return;
  }
  EXPECT_TRUE(sleeps.Await(0));
  executor.SetReception(Reception::kBlock);
  EXPECT_EQ(executor.config().ToString(), "SIB1");
  EXPECT_TRUE(sleeps.Await(1)) << "though there was no event";
  executor.SetReception(Reception::kPoll);
  EXPECT_EQ(executor.config().ToString(), "SIP1");
  EXPECT_EQ(executor.Sample().spinning, 0) << "not before the next wait";
  receiver.Feed(&task);
  EXPECT_TRUE(counter.Await(1));
  EXPECT_TRUE(sleeps.Await(0));
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (executor.Sample().spinning == 0 && !deadline.Expired()) std::this_thread::yield();
  EXPECT_EQ(executor.Sample().spinning, 1);
}

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
  ComputingMeetingTask(Counter* started, int all, Counter* met) : meeting_(started, all, met) {}
  void Run(const WaitHint& hint) override {
    const Deadline deadline = Deadline::In(std::chrono::milliseconds(10));
    while (!deadline.Expired()) {
    }
    meeting_.Run(hint);
  }

 private:
  MeetingTask meeting_;
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

// Computes until another task has run, for `longest`.
class ComputingTask final : public Task {
 public:
  ComputingTask(std::atomic<bool>* end, Nanos longest) : end_(end), longest_(longest) {}
  void Run(const WaitHint&) override {
    const Deadline deadline = Deadline::In(longest_);
    while (!end_->load() && !deadline.Expired()) {
    }
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

// Property: whatever the configs, each task runs exactly once, and none waits for ever.
void SwitchAndRun(int switches, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  static constexpr const char* kConfigs[] = {"SIB1",   "SIB4",   "SIP1", "SIP2",   "SDB1-1", "SDB1-6",
                                             "SDB2-4", "SDP1-3", "FIB1", "FDB1-2", "auto"};
  FakeReceiver receiver;
  Counter counter;
  Rng rng(seed);
  constexpr int kTasksEach = 5;
  std::vector<CountingTask> tasks(static_cast<size_t>(switches) * kTasksEach, CountingTask(&counter));
  Executor executor(*Config::Parse("SIB1"), {.max_threads = 8}, &receiver, &receiver, nullptr);
  size_t next = 0;
  for (int i = 0; i < switches; ++i) {
    for (int t = 0; t < kTasksEach; ++t) {
      if (rng.Below(2) == 0) {
        receiver.Feed(&tasks[next++]);
      } else {
        TaskList list;
        list.Push(&tasks[next++]);
        executor.Submit(list);
      }
    }
    ASSERT_TRUE(executor.SwitchTo(*Config::Parse(kConfigs[rng.Below(std::size(kConfigs))])).ok());
  }
  EXPECT_TRUE(counter.Await(static_cast<int>(tasks.size())));
  TaskList left_over;
  EXPECT_TRUE(executor.Stop(Deadline::In(kMaxTestWait), &left_over));
  EXPECT_TRUE(left_over.empty());
  EXPECT_EQ(counter.count(), static_cast<int>(tasks.size()));
}

TEST(ExecutorSwitch, LosesNoTask) { SwitchAndRun(10, 1); }

TEST(ExecutorSwitch, LosesNoTaskStress) {
  const uint64_t seed = static_cast<uint64_t>(Now().time_since_epoch().count());
  std::cout << "seed " << seed << "\n";
  for (uint64_t i = 0; i < 20; ++i) SwitchAndRun(200, seed + i);
}

INSTANTIATE_TEST_SUITE_P(Models, ExecutorTest,
                         testing::Values("SIB1", "SIB4", "SIP1", "SIP3", "SDB1-1", "SDB1-8", "SDB3-4",
                                         "SDP2-2", "FIB1", "FIB3", "FIP2", "FDB1-1", "FDB2-4", "FDP1-2",
                                         "auto"),
                         NameOf);

}  // namespace
}  // namespace curtail
