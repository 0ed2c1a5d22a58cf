// SPDX-License-Identifier: Apache-2.0
//
// guard_pace.h - how often the guard of `auto` looks at the fiber threads (stand_ins.cc).
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "curtail/base/clock.h"

namespace curtail {

// A GuardPace keeps the guard's looks in proportion to their use. A look wakes a thread: tens of
// services on one machine would pay for more looks than they serve requests.
//
//  - After a look that found a run in progress, another comes after kShort: the two find a run that
//    lasts.
//  - Otherwise each look doubles the time to the next one, up to kLong.
//  - For kWary after a thread was held up every look comes after kShort: its handlers do so.
//  - After kQuiet without a run the guard sleeps until there is one.
//
// Pure; owned by the guard.
class GuardPace {
 public:
  static constexpr Nanos kShort = std::chrono::milliseconds(2);
  static constexpr Nanos kLong = std::chrono::milliseconds(128);
  static constexpr Nanos kWary = std::chrono::seconds(1);
  static constexpr Nanos kQuiet = std::chrono::milliseconds(256);

  // The findings of a look.
  struct Look {
    bool running = false;  // a run was in progress
    bool ran = false;      // ... or had been since the look before
    bool held = false;     // a thread was held up
  };
  // The time from this look to the next; none: the guard sleeps until a run wakes it.
  std::optional<Nanos> Next(const Look& look) {
    wary_ = look.held ? kWary : wary_ - std::min(wary_, next_);
    quiet_ = look.running || look.ran ? Nanos(0) : quiet_ + next_;
    again_ = look.running && !again_;
    if (wary_ > Nanos(0)) {
      gap_ = kShort;
    } else if (!again_) {
      gap_ = std::min(2 * gap_, kLong);
    }
    next_ = again_ ? kShort : gap_;
    if (quiet_ < kQuiet) return next_;
    quiet_ = Nanos(0);
    next_ = gap_ = kShort;
    return std::nullopt;
  }

 private:
  Nanos next_ = kShort;
  Nanos gap_ = kShort;  // between looks, but for repeated looks
  bool again_ = false;  // the next look is such a one
  Nanos wary_{0};       // left of it
  Nanos quiet_{0};      // without a run so far
};

}  // namespace curtail
