// SPDX-License-Identifier: Apache-2.0
//
// parker.h - a place to sleep for one thread or fiber: an epoch that other threads advance, and a
// few sticky signal bits beside it. On a fiber the sleep is a Suspend(), and the thread runs other
// fibers.
//
// The sleeper takes a ticket, tests its condition, and waits until the epoch is no longer the
// ticket. A thread that changes the condition notifies afterwards. A notification between the test
// and the wait is not lost, because the epoch has moved on by then. There is no flag that a thread
// could reset at the wrong moment.
//
// Lifetime: Notify() is one atomic step on the Parker; after it only the address is used (to wake).
// A waiter that saw its signal in the word may therefore destroy the Parker at once. A condition
// outside the word gives no such right.
//
// Thread safety: one thread or fiber waits, any number notify.
// Memory ordering: the waiter that sees the new epoch or signal sees all writes before Notify().
#pragma once

#include <atomic>
#include <cstdint>

#include "curtail/base/clock.h"

namespace curtail {

class Fiber;

class Parker {
 public:
  // Signals are bits of this mask; their meaning is the owner's.
  static constexpr uint32_t kSignals = 0xfe;
  static constexpr uint32_t Signal(int n) { return 2u << n; }

  Parker() = default;
  Parker(const Parker&) = delete;
  Parker& operator=(const Parker&) = delete;

  // Epoch and signals now: a ticket for Wait(), to be taken before the test of the condition.
  uint32_t Ticket() const { return word_.load(std::memory_order_acquire); }
  // Sleeps until the word is no longer `ticket`, or until `deadline`. May return early: test again.
  void Wait(uint32_t ticket, Deadline deadline);
  // Sets `signals`, advances the epoch, and wakes the sleeper if there is one. Returns the word
  // before. Never blocks; makes a system call only when a thread sleeps.
  uint32_t Notify(uint32_t signals = 0);

  // The waiter's own bits: sets or clears signals without waking a thread. Both return the word
  // before.
  uint32_t Set(uint32_t signals) { return word_.fetch_or(signals, std::memory_order_acq_rel); }
  uint32_t Clear(uint32_t signals) { return word_.fetch_and(~signals, std::memory_order_acq_rel); }

 private:
  static constexpr uint32_t kSleeping = 1;
  static constexpr uint32_t kEpoch = 0x100;
  // Atomic: epoch << 8 | signals | sleeping. All writes are read-modify-writes, so the two sides
  // agree on an order.
  std::atomic<uint32_t> word_{0};
  // Atomic: the sleeper, if it is a fiber. Written before kSleeping is set, read before it is seen
  // taken.
  std::atomic<Fiber*> fiber_{nullptr};
};

}  // namespace curtail
