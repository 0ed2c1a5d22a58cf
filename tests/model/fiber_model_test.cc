// SPDX-License-Identifier: Apache-2.0
//
// A loop of fibers under all schedules: a fiber that waits goes on once it is notified, from whichever
// thread, and the loop's thread never sleeps while one of its fibers could run.
#include "curtail/exec/fiber.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/model/scheduler.h"

namespace curtail {
namespace {

using model::Check;
using model::Explore;
using model::Outcome;

constexpr uint32_t kGo = Parker::Signal(0);

class Work final : public Task {
 public:
  explicit Work(std::function<void()> body) : body_(std::move(body)) {}
  void Run(const WaitHint&) override { body_(); }

 private:
  const std::function<void()> body_;
};

void WaitFor(Parker& parker) {
  for (uint32_t ticket = parker.Ticket(); !(ticket & kGo); ticket = parker.Ticket()) {
    parker.Wait(ticket, Deadline::Infinite());
  }
}

// Starts `tasks` on a loop and `others` on threads, and runs until all have ended. The loop outlives those
// that wake its fibers, as it must.
void RunLoop(std::initializer_list<Task*> tasks, std::initializer_list<std::function<void()>> others) {
  FiberLoop loop({.stack_bytes = 64 << 10});
  const WaitHint hint{.waiting = Waiting::kFiber, .loop = &loop};
  const ScopedWait scope(hint);
  Parker seat;
  std::vector<std::thread> threads;
  for (const auto& other : others) threads.emplace_back(other);
  for (Task* task : tasks) Check(loop.Start(task, hint), "start");
  while (loop.live() > 0) {
    const uint32_t ticket = seat.Ticket();
    loop.HasReady() ? loop.RunReady() : loop.Wait(seat, ticket, nullptr);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(FiberModel, AFiberIsWokenFromAnotherThread) {
  const Outcome outcome = Explore({.preemptions = 3, .random_schedules = 2000}, [] {
    Parker parker;
    Work work([&] { WaitFor(parker); });
    RunLoop({&work}, {[&] { parker.Notify(kGo); }});
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// F1, F2: wake-ups from several threads, one of them by a fiber of the same loop, and one for nothing.
TEST(FiberModel, NoWakeUpIsLostAmongMany) {
  const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 2000}, [] {
    Parker a, b;
    Work first([&] { WaitFor(a); });
    Work second([&] { WaitFor(b), a.Notify(kGo); });
    RunLoop({&first, &second}, {[&] { b.Notify(kGo); }, [&] { b.Notify(), b.Notify(); }});
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// F3: a thread that advances the epoch of the seat and then rouses the loop ends its wait.
TEST(FiberModel, TheLoopIsRoused) {
  const Outcome outcome = Explore({.preemptions = 3, .random_schedules = 2000}, [] {
    FiberLoop loop({});
    Parker seat;
    std::thread other([&] { seat.Notify(kGo), loop.Rouse(); });
    for (uint32_t ticket = seat.Ticket(); !(ticket & kGo); ticket = seat.Ticket()) {
      loop.Wait(seat, ticket, nullptr);
    }
    other.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// A fiber's wait ends at its deadline or by its signal, whichever comes first, and both may.
TEST(FiberModel, ADeadlineEndsTheWaitOfAFiber) {
  bool expired = false, signalled = false;
  const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 2000}, [&] {
    Parker parker;
    const Deadline deadline = Deadline::At(TimePoint(Nanos(model::Moment(1000))));
    Work work([&] {
      uint32_t ticket = parker.Ticket();
      while (!(ticket & kGo) && !deadline.Expired()) {
        parker.Wait(ticket, deadline);
        ticket = parker.Ticket();
      }
      (ticket & kGo ? signalled : expired) = true;
    });
    RunLoop({&work}, {[&] { parker.Notify(kGo); }});
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
  EXPECT_TRUE(expired && signalled);
}

}  // namespace
}  // namespace curtail
