// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/parker.h"
#include "curtail/base/testing.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace curtail {
namespace {

TEST(Parker, AStaleTicketDoesNotSleep) {
  Parker parker;
  const uint32_t ticket = parker.Ticket();
  parker.Notify();
  parker.Wait(ticket, Deadline::Infinite());  // would hang if the notification were lost
  EXPECT_NE(parker.Ticket(), ticket);
}

TEST(Parker, WaitsUntilTheDeadline) {
  Parker parker;
  const Deadline deadline = Deadline::In(std::chrono::milliseconds(2));
  while (!deadline.Expired()) parker.Wait(parker.Ticket(), deadline);
  SUCCEED();
}

TEST(Parker, SignalsStickUntilCleared) {
  Parker parker;
  parker.Notify(Parker::Signal(0));
  EXPECT_TRUE(parker.Ticket() & Parker::Signal(0));
  parker.Notify(Parker::Signal(3));
  EXPECT_TRUE(parker.Ticket() & Parker::Signal(0));
  parker.Clear(Parker::Signal(0));
  EXPECT_EQ(parker.Ticket() & Parker::kSignals, Parker::Signal(3));
}

// Property: a waiter that saw its signal may destroy the Parker while Notify() is still on its way out.
TEST(Parker, MayBeDestroyedOnceItsSignalIsSeenStress) {
  for (int i = 0; i < 2000; ++i) {
    auto parker = std::make_unique<Parker>();
    Parker* const raw = parker.get();
    std::thread notifier([raw] { raw->Notify(Parker::Signal(0)); });
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (true) {
      const uint32_t ticket = parker->Ticket();
      if (ticket & Parker::Signal(0)) break;
      parker->Wait(ticket, deadline);
      ASSERT_FALSE(deadline.Expired());
    }
    parker.reset();
    notifier.join();
  }
}

// Property: in a game of ping-pong no notification is lost, whoever is quicker.
TEST(Parker, NoWakeUpIsLostStress) {
  Parker a, b;
  std::atomic<int> turn{0};
  constexpr int kRounds = 20000;
  auto play = [&](Parker& mine, Parker& other, int parity) {
    for (int i = 0; i < kRounds; ++i) {
      while (true) {
        const uint32_t ticket = mine.Ticket();
        if (turn.load() % 2 == parity) break;
        mine.Wait(ticket, Deadline::In(kMaxTestWait));
      }
      ++turn;
      other.Notify();
    }
  };
  std::thread second([&] { play(b, a, 1); });
  play(a, b, 0);
  second.join();
  EXPECT_EQ(turn, 2 * kRounds);
}

}  // namespace
}  // namespace curtail
