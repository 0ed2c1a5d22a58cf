// SPDX-License-Identifier: Apache-2.0
//
// executor_testing.h - tasks that count and meet, and a network without sockets, for tests of the executor.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "curtail/base/mutex.h"
#include "curtail/base/testing.h"
#include "curtail/exec/receiver.h"
#include "curtail/exec/task.h"

namespace curtail {

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
class FakeReceiver : public Receiver, public Outbox {
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

}  // namespace curtail
