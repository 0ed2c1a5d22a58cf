// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/base/cpus.h"
#include "curtail/base/rng.h"
#include "curtail/base/testing.h"
#include "curtail/exec/blocking.h"
#include "curtail/exec/executor/executor_testing.h"
#include "curtail/exec/fiber.h"
#include "curtail/exec/task_testing.h"

namespace curtail {
namespace {

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

Nanos CpuOfThread() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + Nanos(t.tv_nsec);
}

// Of this thread, so that a busy machine takes nothing from it.
void SpinFor(Nanos cpu) {
  for (const Nanos end = CpuOfThread() + cpu; CpuOfThread() < end;) continue;
}

class SpinningTask final : public Task {
 public:
  SpinningTask(Counter* counter, Nanos time, bool yields) : counter_(counter), time_(time), yields_(yields) {}
  void Run(const WaitHint&) override {
    const int parts = yields_ ? 16 : 1;
    for (int i = 0; i < parts; ++i) {
      SpinFor(time_ / parts);
      if (yields_) Fiber::YieldIfLong();
    }
    counter_->Add();
  }

 private:
  Counter* const counter_;
  const Nanos time_;
  const bool yields_;
};

// The requests that a flood brings whenever the thread looks at it, and what they and the look take.
struct Flood {
  int looks;
  int per_look;
  Nanos look;
  Nanos request;
  bool yields = false;  // if it is long
};

class FloodReceiver final : public FakeReceiver {
 public:
  FloodReceiver(const Flood& flood, Counter* counter)
      : flood_(flood),
        counter_(counter),
        tasks_(static_cast<size_t>(flood.looks * flood.per_look),
               SpinningTask(counter, flood.request, flood.yields)) {}

  void Handle(const std::vector<Poller::Ready>&, TaskList* ready) override {
    if (looks_ == flood_.looks) return;
    if (looks_ == 0) began_ = Now(), cpu_ = CpuOfThread();
    most_waiting_ = std::max(most_waiting_, looks_ * flood_.per_look - counter_->count());
    SpinFor(flood_.look);
    for (int i = 0; i < flood_.per_look; ++i)
      ready->Push(&tasks_[static_cast<size_t>(looks_ * flood_.per_look + i)]);
    if (++looks_ == flood_.looks)
      busy_ = std::chrono::duration<double>(Now() - began_) / (CpuOfThread() - cpu_);
    poller().Wake();
  }
  // REQUIRES: all have run.
  int most_waiting() const { return most_waiting_; }
  // How much longer the flood lasted than its thread ran: 1 where nothing else wants the CPU. The thread never waits.
  double busy() const { return busy_; }

 private:
  const Flood flood_;
  Counter* const counter_;
  std::vector<SpinningTask> tasks_;
  // Owned by the one thread of the executor.
  int looks_ = 0;
  int most_waiting_ = 0;
  TimePoint began_;
  Nanos cpu_{0};
  double busy_ = 1;
};

// Property: a thread that both receives and runs requests does not let them pile up, however fast they come.
TEST(ExecutorFiber, RequestsThatComeFastDoNotPileUp) {
  using std::chrono::microseconds;
  for (const Flood& flood : {Flood{100, 100, microseconds(1000), microseconds(0)},
                             Flood{60, 20, microseconds(4000), microseconds(300)},
                             Flood{60, 20, microseconds(4000), microseconds(300), true}}) {
    Counter counter;
    FloodReceiver receiver(flood, &counter);
    Executor executor(*Config::Parse("FIB1"), {.max_threads = 0}, &receiver, &receiver, nullptr);
    receiver.Wake();
    ASSERT_TRUE(counter.Await(flood.looks * flood.per_look));
    // A batch ends by the wall clock: it runs fewer requests on a busy machine.
    EXPECT_LT(receiver.most_waiting(), 10 * flood.per_look * receiver.busy()) << receiver.busy();
  }
}

// Brings 64 requests at once, and the next as soon as these have ended. Notes how many of them began before output left.
class RoundsReceiver final : public FakeReceiver {
 public:
  // Each thread seems to hold output of `holds` handlers.
  explicit RoundsReceiver(size_t holds) : holds_(holds) {
    for (int i = 0; i < kRound; ++i) {
      tasks_.emplace_back([this] {
        ++begun_;
        Fiber::Current()->Suspend(Deadline::In(Nanos(1)));
        if (++ended_ == kRound) poller().Wake();
      });
    }
  }

  void Handle(const std::vector<Poller::Ready>&, TaskList* ready) override {
    if (rounds_ > 0 && ended_ < kRound) return;
    if (largest_ > kRound / 2 || rounds_++ == kRounds) return done.Add();
    begun_ = ended_ = 0;
    flushed_ = false;
    for (FunctionTask& task : tasks_) ready->Push(&task);
  }
  void Flush(uint32_t) override {
    if (!std::exchange(flushed_, true)) largest_ = std::max(largest_, begun_);
  }
  size_t Holds(uint32_t) const override { return holds_; }

  // After `done`: the most requests that began before the first output left.
  int largest() const { return largest_; }

  Counter done;

 private:
  static constexpr int kRound = 64, kRounds = 1000;
  const size_t holds_;
  std::deque<FunctionTask> tasks_;
  // Owned by the one thread of the executor. Of this round:
  int begun_ = 0, ended_ = 0;
  bool flushed_ = true;
  // Of all:
  int rounds_ = 0, largest_ = 0;
};

int LargestBatch(size_t holds) {
  RoundsReceiver receiver(holds);
  Executor executor(*Config::Parse("FIB1"), {.max_threads = 0}, &receiver, &receiver, nullptr);
  receiver.Wake();
  EXPECT_TRUE(receiver.done.Await(1));
  return receiver.largest();
}

// Property: requests that wait for few other services leave when half of those in flight have begun.
TEST(ExecutorFiber, ABatchEndsAtItsHalfWhereNothingElseIsInFlight) {
  EXPECT_LE(LargestBatch(8), 32);
  if (!kSanitized) {  // 64 take longer there than a batch may
    EXPECT_GT(LargestBatch(9), 32);
  }
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
