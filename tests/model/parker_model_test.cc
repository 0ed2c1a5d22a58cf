// SPDX-License-Identifier: Apache-2.0
//
// The Parker under all schedules: no notification is lost, and none touches a Parker that has ended.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "curtail/exec/parker.h"
#include "tests/model/moment.h"
#include "tests/model/scheduler.h"

namespace curtail {
namespace {

using model::At;
using model::Check;
using model::Explore;
using model::Fresh;
using model::Outcome;

constexpr model::Options kOptions = {.preemptions = 3, .random_schedules = 5000, .spurious_wakeups = 1};

// Property: a waiter that looks at its condition between ticket and wait sees each change of it.
TEST(ParkerModel, NoNotificationIsLost) {
  const Outcome outcome = Explore(kOptions, [] {
    Parker parker;
    std::atomic<int> changes = 0;
    std::thread waiter([&] {
      while (true) {
        const uint32_t ticket = parker.Ticket();
        if (changes.load() == 2) return;
        parker.Wait(ticket, Deadline::Infinite());
      }
    });
    std::thread other([&] { ++changes, parker.Notify(); });
    ++changes, parker.Notify();
    waiter.join(), other.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// Property: a waiter that saw its signal may end the Parker at once, whatever the notifier still does.
TEST(ParkerModel, SignalsStickAndAreTheLastTouch) {
  const Outcome outcome = Explore(kOptions, [] {
    Fresh<std::atomic<Parker*>> shared(nullptr);
    std::thread waiter([&] {
      Fresh<Parker> parker;
      (*shared).store(parker.get());
      while (true) {
        const uint32_t ticket = parker->Ticket();
        if (ticket & Parker::Signal(0)) return;
        parker->Wait(ticket, Deadline::Infinite());
      }
    });
    while ((*shared).load() == nullptr) std::this_thread::yield();
    (*shared).load()->Notify(Parker::Signal(0));
    waiter.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// Property: what the waiter sets and clears for itself never undoes what others signal meanwhile.
TEST(ParkerModel, OwnBitsDoNotUndoSignals) {
  const Outcome outcome = Explore(kOptions, [] {
    Parker parker;
    std::thread other([&] { parker.Notify(Parker::Signal(0)); });
    std::thread another([&] { parker.Notify(Parker::Signal(1)); });
    parker.Set(Parker::Signal(2));
    const uint32_t all = Parker::Signal(0) | Parker::Signal(1);
    while (true) {
      const uint32_t ticket = parker.Ticket();
      Check(ticket & Parker::Signal(2), "the waiter's own bit is gone");
      if ((ticket & all) == all) break;
      parker.Wait(ticket, Deadline::Infinite());
    }
    other.join(), another.join();
    Check((parker.Clear(all) & all) == all, "a signal is gone");
    Check((parker.Ticket() & Parker::kSignals) == Parker::Signal(2), "another bit was cleared");
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// Property: a wait ends by its deadline, and a notification at that very moment is still there afterwards.
TEST(ParkerModel, ADeadlineEndsTheWaitAndLosesNoSignal) {
  bool expired = false, signalled = false;
  const Outcome outcome = Explore(kOptions, [&] {
    Parker parker;
    const Deadline deadline = At(1000);
    std::thread other([&] { parker.Notify(Parker::Signal(0)); });
    uint32_t ticket = parker.Ticket();
    while (!(ticket & Parker::Signal(0)) && !deadline.Expired()) {
      parker.Wait(ticket, deadline);
      ticket = parker.Ticket();
    }
    (ticket & Parker::Signal(0) ? signalled : expired) = true;
    other.join();
    Check(parker.Ticket() & Parker::Signal(0), "the signal is gone");
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
  EXPECT_TRUE(expired && signalled);
}

// Property: an old sleep leaves nothing behind that would end, or spoil, the next one.
TEST(ParkerModel, OneParkerServesManyWaits) {
  const Outcome outcome = Explore(kOptions, [] {
    Parker parker;
    std::atomic<int> given = 0, taken = 0;
    std::thread waiter([&] {
      while (taken.load() < 2) {
        const uint32_t ticket = parker.Ticket();
        if (given.load() > taken.load()) {
          ++taken;
          continue;
        }
        parker.Wait(ticket, Deadline::Infinite());
      }
    });
    for (int i = 0; i < 2; ++i) ++given, parker.Notify();
    waiter.join();
    Check(taken.load() == 2, "not all was taken");
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

}  // namespace
}  // namespace curtail
