// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/async.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "curtail/base/testing.h"
#include "curtail/exec/executor.h"

namespace curtail {
namespace {

// No network: tasks come through Submit().
class SilentReceiver final : public Receiver, public Outbox {
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

class AsyncTest : public testing::TestWithParam<const char*> {
 protected:
  // Runs `body` as a request of a server with the config under test, and waits for it.
  void Run(std::function<void()> body) {
    struct Request final : Task {
      std::function<void()> body;
      Parker done;
      void Run(const WaitHint&) override {
        body();
        done.Notify(Parker::Signal(0));
      }
    } request;
    request.body = std::move(body);
    TaskList list;
    list.Push(&request);
    executor_.Submit(list);
    const Deadline deadline = Deadline::In(kMaxTestWait);
    for (uint32_t t = request.done.Ticket(); !(t & Parker::Signal(0)); t = request.done.Ticket()) {
      ASSERT_FALSE(deadline.Expired());
      request.done.Wait(t, deadline);
    }
  }

  SilentReceiver receiver_;
  Executor executor_{*Config::Parse(GetParam()), {.max_threads = 8}, &receiver_, &receiver_, nullptr};
};

TEST_P(AsyncTest, ReturnsWhatTheFunctionReturns) {
  Run([] {
    auto text = async([] { return std::string("text"); });
    auto nothing = async([] {});
    auto owner = async([] { return std::make_unique<int>(7); });
    EXPECT_EQ(text.get(), "text");
    nothing.get();
    EXPECT_EQ(*owner.get(), 7);
  });
}

TEST_P(AsyncTest, ThrowsWhatTheFunctionThrows) {
  Run([] {
    auto future = async([]() -> int { throw std::runtime_error("thrown"); });
    EXPECT_THROW(future.get(), std::runtime_error);
  });
}

TEST_P(AsyncTest, PartsWaitForEachOther) {
  // Each of four parts waits until the other three have come: only if they run beside each other it ends.
  Run([] {
    std::atomic<int> arrived{0};
    const auto part = [&arrived] {
      ++arrived;
      const Deadline deadline = Deadline::In(kMaxTestWait);
      while (arrived < 4 && !deadline.Expired()) SleepUntil(Deadline::In(std::chrono::microseconds(100)));
      return arrived.load();
    };
    auto a = async(part);
    auto b = async(part);
    auto c = async(part);
    auto d = async(part);
    EXPECT_EQ(a.get() + b.get() + c.get() + d.get(), 16);
  });
}

TEST_P(AsyncTest, NestsDeeperThanThereAreThreads) {
  std::function<int(int)> nest = [&](int depth) {
    if (depth == 0) return 0;
    auto inner = async([&nest, depth] { return nest(depth - 1) + 1; });
    return inner.get();
  };
  Run([&] { EXPECT_EQ(nest(40), 40); });
}

TEST_P(AsyncTest, ADroppedFutureWaitsForItsFunction) {
  Run([] {
    std::atomic<bool> ran{false};
    {
      auto future = async([&] { ran = true; });
      (void)future;
    }
    EXPECT_TRUE(ran);
  });
}

TEST_P(AsyncTest, WhatTheFunctionHoldsIsGoneWhenItIsDone) {
  Run([] {
    for (int i = 0; i < 50; ++i) {
      auto held = std::make_shared<int>(i);
      auto future = async([held] { return *held; });
      EXPECT_EQ(future.get(), i);
      EXPECT_EQ(held.use_count(), 1);  // even if a thread was woken for it and comes late
    }
  });
}

TEST_P(AsyncTest, OffloadReturnsAndThrows) {
  Run([] {
    EXPECT_EQ(Offload([] { return 42; }), 42);
    EXPECT_THROW(Offload([]() -> int { throw std::logic_error("x"); }), std::logic_error);
  });
}

INSTANTIATE_TEST_SUITE_P(Models, AsyncTest, testing::Values("SIB1", "SDB1-2", "FIB1", "FIB2", "FDB1-1"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

using OffloadTest = AsyncTest;

TEST_P(OffloadTest, LeavesTheThreadToOtherFibers) {
  Run([] {
    // The blocking function ends only when another fiber of this thread has run.
    std::atomic<bool> other_ran{false};
    const std::thread::id here = std::this_thread::get_id();
    auto other = async([&] {
      EXPECT_EQ(std::this_thread::get_id(), here);
      other_ran = true;
    });
    const bool seen = Offload([&] {
      EXPECT_NE(std::this_thread::get_id(), here);
      const Deadline deadline = Deadline::In(kMaxTestWait);
      while (!other_ran && !deadline.Expired()) std::this_thread::yield();
      return other_ran.load();
    });
    EXPECT_TRUE(seen);
    other.get();
  });
}

INSTANTIATE_TEST_SUITE_P(Models, OffloadTest, testing::Values("FIB1", "FDB1-1"),
                         [](const auto& info) { return std::string(info.param).substr(0, 3); });

TEST(Async, OutsideOfServersUsesAThread) {
  const std::thread::id here = std::this_thread::get_id();
  auto first = async([] { return std::this_thread::get_id(); });
  auto second = async([] { return 2; });
  EXPECT_EQ(second.get(), 2);
  first.get();
  EXPECT_EQ(std::this_thread::get_id(), here);
}

}  // namespace
}  // namespace curtail
