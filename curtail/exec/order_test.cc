// SPDX-License-Identifier: Apache-2.0
//
// The seam of the orders: the default one, and another whose every freedom the executor has to honour.
#include "curtail/exec/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/base/testing.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/internal/fifo_order.h"

namespace curtail {
namespace {

using ::testing::ElementsAre;

// Which tasks ran, in their order; lets a thread, but no fiber, wait for a number of them.
class Diary {
 public:
  void Write(std::string line) {
    std::lock_guard lock(mu_);
    lines_.push_back(std::move(line));
    written_.notify_all();
  }
  std::vector<std::string> Await(size_t count) {
    std::unique_lock lock(mu_);
    written_.wait_for(lock, kMaxTestWait, [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  std::mutex mu_;
  std::condition_variable written_;
  std::vector<std::string> lines_;
};

// A task of a class, which is its name; writes the name down, with "!" if it was shed.
class NamedTask final : public Task {
 public:
  NamedTask(std::string_view name, Diary* diary) : name_(name), diary_(diary) {}
  void Run(const WaitHint& hint) override { diary_->Write(std::string(name_) + (hint.shed ? "!" : "")); }
  std::string_view name() const override { return name_; }

 private:
  const std::string_view name_;
  Diary* const diary_;
};

// Keeps its thread until it is opened.
class Gate final : public Task {
 public:
  explicit Gate(Diary* diary, std::string_view name = "gate") : name_(name), diary_(diary) {}
  void Run(const WaitHint&) override {
    diary_->Write(std::string(name_));
    opened_.Await(1);
  }
  void Open() { opened_.Write("open"); }
  std::string_view name() const override { return name_; }

 private:
  const std::string_view name_;
  Diary* const diary_;
  Diary opened_;
};

// Whatever is no "batch" goes first, "stale" is shed, and "fenced" waits for a permit.
class ClassOrder final : public Order {
 public:
  ClassOrder(std::atomic<int>* permits, std::atomic<uint32_t>* threads, uint32_t beside = 0)
      : permits_(permits), threads_(threads), beside_(beside) {}
  uint32_t Beside(uint32_t) const override { return beside_; }
  void SetThreads(uint32_t threads) override { threads_->store(threads); }
  void Append(TaskList& tasks) override {
    while (Task* task = tasks.Pop()) {
      (task->name() == "batch" ? batch_ : task->name() == "fenced" ? fenced_ : first_).Push(task);
    }
    for (; !fenced_.empty() && permits_->load() > 0; permits_->fetch_sub(1)) first_.Push(fenced_.Pop());
    ready_ = first_.size() + batch_.size();
  }
  Next Pop(TimePoint) override {
    --ready_;
    Task* const task = first_.empty() ? batch_.Pop() : first_.Pop();
    return {.task = task, .shed = task->name() == "stale"};
  }
  void TakeAll(TaskList* left_over) override {
    for (TaskList* list : {&first_, &batch_, &fenced_}) left_over->Append(*list);
    ready_ = 0;
  }
  size_t size() const override { return first_.size() + batch_.size() + fenced_.size(); }

 private:
  std::atomic<int>* const permits_;
  std::atomic<uint32_t>* const threads_;
  const uint32_t beside_;
  TaskList first_, batch_, fenced_;
};

// Returns two permits once it is opened, and has its thread look.
class Returner final : public Task {
 public:
  explicit Returner(std::atomic<int>* permits) : permits_(permits) {}
  void Run(const WaitHint& hint) override {
    opened_.Await(1);
    *permits_ = 2;
    looked_ = hint.look != nullptr;
    if (looked_) *hint.look = true;
  }
  void Open() { opened_.Write("open"); }
  bool looked() const { return looked_; }

 private:
  std::atomic<int>* const permits_;
  Diary opened_;
  std::atomic<bool> looked_{false};
};

// A network that brings nothing: all tasks are submitted.
class NoNetwork final : public Receiver, public Outbox {
 public:
  Poller& poller() override { return poller_; }
  void Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) override {
    poller_.Wait(std::min(deadline, Deadline::In(kMaxTestWait)), spin, events);
  }
  void Handle(const std::vector<Poller::Ready>&, TaskList*) override {}
  void Wake() override { poller_.Wake(); }
  void Hold(uint32_t, std::shared_ptr<PollHandler>) override {}
  void FlushIfDue(uint32_t) override {}
  void Flush(uint32_t) override {}

 private:
  Poller poller_;
};

class OrderTest : public testing::TestWithParam<const char*> {
 protected:
  void Submit(std::initializer_list<Task*> tasks) {
    TaskList list;
    for (Task* task : tasks) list.Push(task);
    executor_.Submit(list);
  }

  std::atomic<int> permits_{0};
  std::atomic<uint32_t> threads_{99};
  Diary diary_;
  NamedTask plain_{"plain", &diary_}, batch_{"batch", &diary_}, stale_{"stale", &diary_};
  NamedTask fenced_{"fenced", &diary_}, another_{"fenced", &diary_};
  NoNetwork receiver_;
  Executor executor_{
      *Config::Parse(GetParam()),
      {.max_threads = 3, .order = [this] { return std::make_unique<ClassOrder>(&permits_, &threads_); }},
      &receiver_,
      &receiver_,
      nullptr};
};

TEST_P(OrderTest, DecidesWhatRunsNextAndWhatIsShed) {
  Gate gate(&diary_);
  Submit({&gate});
  diary_.Await(1);  // the only thread that runs tasks is busy
  Submit({&batch_, &plain_, &stale_});
  EXPECT_EQ(executor_.Sample().queued, 3u);
  gate.Open();
  EXPECT_THAT(diary_.Await(4), ElementsAre("gate", "plain", "stale!", "batch"));
  EXPECT_GT(executor_.Sample().max_queue_wait, Nanos(0));
  EXPECT_EQ(executor_.Sample().max_queue_wait, Nanos(0)) << "nothing has waited since";
}

TEST_P(OrderTest, TellsOfTasksThatItShed) {
  Submit({&stale_});
  EXPECT_THAT(diary_.Await(1), ElementsAre("stale!"));
}

TEST_P(OrderTest, MayHoldTasksBackUntilAnEmptyListComes) {
  Submit({&fenced_, &another_, &plain_});
  EXPECT_THAT(diary_.Await(1), ElementsAre("plain"));
  permits_ = 1;
  Submit({});
  EXPECT_THAT(diary_.Await(2), ElementsAre("plain", "fenced"));
  EXPECT_EQ(executor_.Sample().queued, 1u);
  TaskList left_over;
  EXPECT_TRUE(executor_.Stop(Deadline::In(kMaxTestWait), &left_over));
  EXPECT_EQ(left_over.size(), 1u) << "also what was held back";
}

TEST_P(OrderTest, IsToldHowManyThreadsTasksMayHold) {
  const bool sync = executor_.config().model.waiting == Waiting::kSync;
  EXPECT_EQ(threads_.load(), sync ? 1u : 0u);
  Submit({&fenced_, &plain_});
  EXPECT_THAT(diary_.Await(1), ElementsAre("plain"));
  permits_ = 1;
  ASSERT_TRUE(executor_.SwitchTo(*Config::Parse("SDB1-2")).ok());
  EXPECT_THAT(diary_.Await(2), ElementsAre("plain", "fenced")) << "a switch may change what is held back";
  EXPECT_EQ(threads_.load(), 2u);
  ASSERT_TRUE(executor_.SwitchTo(*Config::Parse("FIB1")).ok());
  EXPECT_EQ(threads_.load(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Models, OrderTest, testing::Values("SIB1", "SDB1-1", "FIB1", "FDB1-1"),
                         [](const auto& info) { return std::string(info.param).substr(0, 3); });

// One of the tasks runs on the thread that looked, the other on another.
TEST(OrderThreads, LookForTheirTasks) {
  for (const char* config : {"SIB2", "SDB1-2"}) {
    SCOPED_TRACE(config);
    std::atomic<int> permits{0};
    std::atomic<uint32_t> threads{99};
    Diary diary;
    Returner returner(&permits);
    Gate gates[] = {Gate(&diary, "fenced"), Gate(&diary, "fenced")};
    NoNetwork receiver;
    Executor executor(
        *Config::Parse(config),
        {.max_threads = 1, .order = [&] { return std::make_unique<ClassOrder>(&permits, &threads); }},
        &receiver, &receiver, nullptr);
    TaskList list;
    list.Push(&returner);
    for (Gate& gate : gates) list.Push(&gate);
    executor.Submit(list);
    returner.Open();
    EXPECT_THAT(diary.Await(2), ElementsAre("fenced", "fenced"));
    EXPECT_TRUE(returner.looked());
    for (Gate& gate : gates) gate.Open();
  }
}

// The order has the threads that it wants beside the config's, as far as the config leaves them.
TEST(OrderThreads, RunTasksBesideThreadsOfTheConfig) {
  for (const char* config : {"SIB1", "SDB1-1"}) {
    SCOPED_TRACE(config);
    std::atomic<int> permits{0};
    std::atomic<uint32_t> threads{99};
    Diary diary;
    Gate gates[] = {Gate(&diary), Gate(&diary), Gate(&diary)};
    NoNetwork receiver;
    Executor executor(
        *Config::Parse(config),
        {.max_threads = 1, .order = [&] { return std::make_unique<ClassOrder>(&permits, &threads, 2); }},
        &receiver, &receiver, nullptr);
    ASSERT_TRUE(executor.status().ok());
    EXPECT_EQ(threads.load(), 3u);
    TaskList list;
    for (Gate& gate : gates) list.Push(&gate);
    executor.Submit(list);
    EXPECT_THAT(diary.Await(3), ElementsAre("gate", "gate", "gate"));
    for (Gate& gate : gates) gate.Open();
    ASSERT_TRUE(executor.SwitchTo(*Config::Parse("SDB1-2")).ok());
    EXPECT_EQ(threads.load() + 1, executor.thread_count());
    ASSERT_TRUE(executor.SwitchTo(*Config::Parse("FIB1")).ok());
    EXPECT_EQ(threads.load(), 0u);
  }
}

TEST(FifoOrder, GivesTasksOutAsTheyCame) {
  Diary diary;
  NamedTask a("a", &diary), b("b", &diary), c("c", &diary);
  const std::unique_ptr<Order> order = MakeFifoOrder();
  TaskList first, second;
  first.Push(&a);
  first.Push(&b);
  second.Push(&c);
  EXPECT_EQ(order->ready(), 0u);
  order->Append(first);
  order->Append(second);
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(order->ready(), 3u);
  for (Task* task : {&a, &b}) {
    const Order::Next next = order->Pop(Now());
    EXPECT_EQ(next.task, task);
    EXPECT_FALSE(next.shed);
  }
  EXPECT_EQ(order->size(), 1u);
  TaskList left_over;
  order->TakeAll(&left_over);
  EXPECT_EQ(left_over.Pop(), &c);
  EXPECT_EQ(order->ready(), 0u);
}

}  // namespace
}  // namespace curtail
