// SPDX-License-Identifier: Apache-2.0
//
// gate_testing.h - where handlers wait until the test opens it, so that no test sleeps to get its timing right.
#pragma once

#include <condition_variable>
#include <mutex>

#include "curtail/base/testing.h"

namespace curtail {

// A Gate is shut until it is opened. Thread-safe.
class Gate {
 public:
  void Open() {
    std::lock_guard lock(mu_);
    open_ = true;
    cv_.notify_all();
  }
  // Waits until it is open; false: it stayed shut for too long.
  bool Pass() {
    std::unique_lock lock(mu_);
    ++arrived_;
    cv_.notify_all();
    return cv_.wait_for(lock, kMaxTestWait, [this] { return open_; });
  }
  // Threads that have come to it so far.
  int arrived() {
    std::lock_guard lock(mu_);
    return arrived_;
  }
  // Waits until so many have come; false: they did not in time.
  bool AwaitArrivals(int n) {
    std::unique_lock lock(mu_);
    return cv_.wait_for(lock, kMaxTestWait, [&] { return arrived_ >= n; });
  }

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  bool open_ = false;
  int arrived_ = 0;
};

}  // namespace curtail
