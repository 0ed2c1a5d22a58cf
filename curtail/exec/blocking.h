// SPDX-License-Identifier: Apache-2.0
//
// blocking.h - reports each system call in which a thread of a pool sleeps.
//
// For policies that count blocked threads (muTune, section 7.2.1: a counter that is incremented
// before a blocking call and decremented after it). Polling does not count, nor do waiting fibers.
#pragma once

#include <cstdint>

namespace curtail {

// A BlockingWatcher hears of threads that go to sleep and wake up. Thread-safe.
class BlockingWatcher {
 public:
  virtual ~BlockingWatcher() = default;
  // This thread is about to sleep (1), or has woken up (-1). It holds no lock, so this may call
  // Executor::SetReception(). It must not sleep.
  virtual void OnBlocking(int delta) = 0;
};

// The watcher of the present thread; mostly null. Set once, when the thread begins.
extern constinit thread_local BlockingWatcher* blocking_watcher;

// Times that the present thread was about to sleep in one of our waits.
extern constinit thread_local uint64_t waits_of_thread;

// Encloses a system call that may sleep. Without a watcher it costs a load and a branch at each
// end.
class ScopedBlocking {
 public:
  ScopedBlocking() : watcher_(blocking_watcher) {
    ++waits_of_thread;
    if (watcher_ != nullptr) watcher_->OnBlocking(1);
  }
  ~ScopedBlocking() {
    if (watcher_ != nullptr) watcher_->OnBlocking(-1);
  }
  ScopedBlocking(const ScopedBlocking&) = delete;
  ScopedBlocking& operator=(const ScopedBlocking&) = delete;

 private:
  BlockingWatcher* const watcher_;
};

}  // namespace curtail
