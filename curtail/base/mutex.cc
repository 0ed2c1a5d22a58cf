// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The mutex of U. Drepper, "Futexes Are Tricky", section 5: a thread that finds the mutex held leaves kAwaited in
// its word and sleeps while that stands. A thread that has slept takes the mutex as kAwaited, because others may sleep
// still; the price is a system call for nobody, now and then.
#include "curtail/base/mutex.h"

#ifndef CURTAIL_MODEL

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace curtail::internal {

void MutexWord::Await(std::atomic<uint32_t>* word) {
  const int error = errno;
  while (word->exchange(kAwaited, std::memory_order_acquire) != kFree) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, uint32_t{kAwaited}, nullptr, nullptr, 0);
  }
  errno = error;
}

void MutexWord::WakeOne(const std::atomic<uint32_t>* word) {
  const int error = errno;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = error;
}

}  // namespace curtail::internal

#endif
