// SPDX-License-Identifier: Apache-2.0
//
// restart_pace.h - how long an instance that has ended waits before it is started again.
#pragma once

#include <algorithm>

#include "curtail/base/clock.h"

namespace curtail::deploy {

// A RestartPace waits for kFirst after the first end of an instance, and twice as long after each
// further one, up to kLongest. An instance that was ready for kSettled begins again. Pure;
// thread-compatible.
class RestartPace {
 public:
  static constexpr Nanos kFirst = std::chrono::milliseconds(100);
  static constexpr Nanos kLongest = std::chrono::seconds(5);
  static constexpr Nanos kSettled = std::chrono::seconds(10);

  // It ended after it had been ready for so long; zero: it never was.
  void Ended(Nanos ready) {
    wait_ = wait_ == Nanos(0) || ready >= kSettled ? kFirst : std::min(2 * wait_, kLongest);
  }
  // It could not be started at all.
  void Failed() { wait_ = kLongest; }
  Nanos wait() const { return wait_; }

 private:
  Nanos wait_{0};
};

}  // namespace curtail::deploy
