// SPDX-License-Identifier: Apache-2.0
//
// blocking.h - tells of each system call in which a thread of a pool sleeps.
//
// For policies that count blocked threads (muTune, section 7.2.1: a counter that is incremented before a
// blocking call and decremented after it). Polling does not count, nor do fibers that wait.
#pragma once

namespace curtail {

// Hears of threads that go to sleep and wake up. Thread-safe.
class BlockingWatcher {
 public:
  virtual ~BlockingWatcher() = default;
  // This thread is about to sleep (1), or has woken up (-1). It holds no lock: whoever sleeps with one would
  // hold everybody up. So this may call Executor::SetReception(), but nothing that sleeps.
  virtual void OnBlocking(int delta) = 0;
};

// Who is told of the present thread; null mostly. Set once, when the thread begins.
extern constinit thread_local BlockingWatcher* blocking_watcher;

// Stands around a system call that may sleep. Without a watcher it costs a load and a branch at each end.
class ScopedBlocking {
 public:
  ScopedBlocking() : watcher_(blocking_watcher) {
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
