// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/fiber.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/exec/task_testing.h"

namespace curtail {
namespace {

// A loop and its thread's duties.
class FiberTest : public testing::Test {
 protected:
  void Start(std::function<void()> body) {
    tasks_.push_back(std::make_unique<FunctionTask>(std::move(body)));
    const ScopedWait scope(hint_);
    ASSERT_TRUE(loop_.Start(tasks_.back().get(), hint_));
  }
  void RunAll() {
    const ScopedWait scope(hint_);
    Parker seat;
    while (loop_.live() > 0) {
      if (loop_.HasReady()) {
        loop_.RunReady();
      } else {
        loop_.Wait(seat, seat.Ticket(), nullptr);
      }
    }
  }

  FiberLoop loop_{FiberOptions{.stack_bytes = 128u << 10, .max_live = 64}};
  const WaitHint hint_{.waiting = Waiting::kFiber, .loop = &loop_};
  std::vector<std::unique_ptr<FunctionTask>> tasks_;
};

TEST_F(FiberTest, TakesTurnsWhereItWaits) {
  std::string order;
  Parker a, b;
  Start([&] {
    order += "a1 ";
    a.Wait(a.Ticket(), Deadline::Infinite());
    order += "a2 ";
    b.Notify();
  });
  Start([&] {
    order += "b1 ";
    const uint32_t ticket = b.Ticket();
    a.Notify();
    b.Wait(ticket, Deadline::Infinite());
    order += "b2";
  });
  RunAll();
  EXPECT_EQ(order, "a1 b1 a2 b2");
  EXPECT_EQ(loop_.live(), 0u);
}

TEST_F(FiberTest, OneThatRunsForLongLetsOthersRun) {
  bool done = false;
  bool over = false;
  Start([&] {
    while (!done) Fiber::YieldIfLong();
    over = true;
  });
  EXPECT_FALSE(over);
  EXPECT_EQ(loop_.yields(), 1u);
  Start([&] { done = true; });
  RunAll();
  EXPECT_TRUE(over);
}

TEST_F(FiberTest, ANotificationBeforeTheWaitIsNotLost) {
  Parker parker;
  bool done = false;
  Start([&] {
    const uint32_t ticket = parker.Ticket();
    parker.Notify();
    parker.Wait(ticket, Deadline::Infinite());
    done = true;
  });
  EXPECT_TRUE(done);
}

TEST_F(FiberTest, DeadlinesEndWaitsInOrder) {
  std::vector<int> order;
  const auto start = Now();
  for (const int ms : {9, 3, 6}) {
    Start([&order, start, ms] {
      SleepUntil(Deadline::At(start + std::chrono::milliseconds(ms)));
      order.push_back(ms);
    });
  }
  RunAll();
  EXPECT_EQ(order, (std::vector<int>{3, 6, 9}));
}

TEST_F(FiberTest, OtherThreadsWakeAFiberEachTime) {
  constexpr int kRounds = 20'000;
  Parker to_fiber, to_thread;
  std::atomic<int> turn{0};
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      for (uint32_t t = to_thread.Ticket(); turn.load() != 2 * i + 1; t = to_thread.Ticket()) {
        to_thread.Wait(t, Deadline::In(std::chrono::seconds(20)));
      }
      turn.store(2 * i + 2);
      to_fiber.Notify();
    }
  });
  Start([&] {
    for (int i = 0; i < kRounds; ++i) {
      turn.store(2 * i + 1);
      to_thread.Notify();
      for (uint32_t t = to_fiber.Ticket(); turn.load() != 2 * i + 2; t = to_fiber.Ticket()) {
        to_fiber.Wait(t, Deadline::In(std::chrono::seconds(20)));
      }
    }
  });
  RunAll();
  other.join();
  EXPECT_EQ(turn.load(), 2 * kRounds);
}

TEST_F(FiberTest, ManyFibersAndWakersLoseNothing) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  constexpr int kFibers = 32;
  constexpr int kWakes = 300;
  struct Box {
    Parker parker;
    std::atomic<int> sent{0};
  };
  std::vector<Box> boxes(kFibers);
  std::atomic<int> received{0};
  for (Box& box : boxes) {
    Start([&] {
      for (int seen = 0; seen < 2 * kWakes;) {
        const uint32_t ticket = box.parker.Ticket();
        const int now = box.sent.load();
        received += now - seen;
        seen = now;
        // Some waits end by their deadline just when the notification comes.
        if (seen < 2 * kWakes) box.parker.Wait(ticket, Deadline::In(std::chrono::microseconds(50)));
      }
    });
  }
  std::vector<std::thread> wakers;
  for (int w = 0; w < 2; ++w) {
    wakers.emplace_back([&, w] {
      Rng rng(kSeed + w);
      std::vector<int> left(kFibers, kWakes);
      for (int n = kFibers * kWakes; n > 0; --n) {
        size_t i = rng.Below(kFibers);
        while (left[i] == 0) i = (i + 1) % kFibers;
        --left[i];
        ++boxes[i].sent;
        boxes[i].parker.Notify();
      }
    });
  }
  RunAll();
  for (std::thread& waker : wakers) waker.join();
  EXPECT_EQ(received.load(), 2 * kFibers * kWakes);
}

TEST_F(FiberTest, ExceptionsOfOneFiberDoNotMeetThoseOfAnother) {
  Parker parker;
  std::string caught;
  Start([&] {
    try {
      throw std::runtime_error("first");
    } catch (const std::exception&) {
      parker.Wait(parker.Ticket(), Deadline::Infinite());  // while the exception is being handled
      try {
        throw;
      } catch (const std::exception& e) {
        caught += e.what();
      }
    }
  });
  Start([&] {
    try {
      throw std::logic_error("second");
    } catch (const std::exception& e) {
      caught += std::string(e.what()) + " ";
      parker.Notify();
      EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
  });
  RunAll();
  EXPECT_EQ(caught, "second first");
}

TEST_F(FiberTest, RefusesMoreFibersThanAllowed) {
  Parker parker;
  for (int i = 0; i < 64; ++i) {
    Start([&] {
      while (!(parker.Ticket() & Parker::Signal(0))) SleepUntil(Deadline::In(std::chrono::milliseconds(1)));
    });
  }
  EXPECT_TRUE(loop_.full());
  FunctionTask one_more([] {});
  EXPECT_FALSE(loop_.Start(&one_more, hint_));
  parker.Notify(Parker::Signal(0));
  RunAll();
  Start([] {});  // there is room again
}

TEST_F(FiberTest, SpawnedTasksRunWhenTheCallerWaits) {
  std::string order;
  FunctionTask child([&] { order += "child "; });
  Start([&] {
    EXPECT_TRUE(loop_.Spawn(&child, hint_));
    order += "parent ";
    SleepUntil(Deadline::In(std::chrono::milliseconds(1)));
    order += "again";
  });
  RunAll();
  EXPECT_EQ(order, "parent child again");
}

// Uses `depth` frames of some 4 KiB.
[[gnu::noinline]] int Recurse(int depth) {
  volatile char frame[4096];
  std::memset(const_cast<char*>(frame), depth & 1, sizeof frame);
  if (depth == 0) return frame[0];
  return Recurse(depth - 1) + frame[100];
}

TEST_F(FiberTest, DeepStacksFit) {
  int sum = -1;
  Start([&] { sum = Recurse(16); });
  EXPECT_EQ(sum, 8);
}

using FiberDeathTest = FiberTest;

TEST_F(FiberDeathTest, AnOverrunIsDiagnosedWithItsHandler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Start([] { Recurse(1'000'000); }),
               "stack overflow on a fiber, in the handler of /test.Deep/Recurse");
}

}  // namespace
}  // namespace curtail
