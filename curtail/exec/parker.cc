// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/parker.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "curtail/exec/blocking.h"
#include "curtail/exec/fiber.h"

namespace curtail {
namespace {

// Sleeps while *word == expected, until the absolute monotonic `deadline`.
void FutexWait(std::atomic<uint32_t>* word, uint32_t expected, Deadline deadline) {
  timespec until;
  timespec* timeout = nullptr;
  if (!deadline.infinite()) {
    const int64_t ns = deadline.when().time_since_epoch().count();
    until = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    timeout = &until;
  }
  // FUTEX_WAIT_BITSET takes an absolute time on the monotonic clock, the one Deadline is measured on.
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void FutexWake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

void Parker::Wait(uint32_t ticket, Deadline deadline) {
  uint32_t expected = ticket;
  Fiber* const fiber = Fiber::Current();
  fiber_.store(fiber, std::memory_order_relaxed);
  // Announce the sleep only on the word the ticket was taken from; a changed word means there is news.
  if (!word_.compare_exchange_strong(expected, ticket | kSleeping, std::memory_order_acq_rel)) return;
  if (fiber != nullptr) {
    fiber->Suspend(deadline);
  } else {
    const ScopedBlocking blocking;
    FutexWait(&word_, ticket | kSleeping, deadline);
  }
  word_.fetch_and(~kSleeping, std::memory_order_acq_rel);
}

uint32_t Parker::Notify(uint32_t signals) {
  uint32_t old = word_.load(std::memory_order_acquire);
  Fiber* fiber = fiber_.load(std::memory_order_relaxed);
  while (!word_.compare_exchange_weak(old, (old | (signals & kSignals)) + kEpoch, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
    fiber = fiber_.load(std::memory_order_relaxed);
  }
  if (old & kSleeping) {
    if (fiber != nullptr) {
      fiber->Wake();  // fibers outlive their waits
    } else {
      FutexWake(&word_);
    }
  }
  return old;
}

}  // namespace curtail
