// SPDX-License-Identifier: Apache-2.0
//
// pace.h - tells a reader that takes its time from one that takes next to nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "curtail/base/clock.h"

namespace curtail::gateway::internal {

// A Pace watches what leaves towards one reader. Thread-compatible.
class Pace {
 public:
  // A reader makes progress when it has taken so many bytes, or all that it is owed.
  static constexpr uint64_t kProgress = 64u << 10;

  // For how long the reader has made no progress, as far as the looks tell. It is owed `owed` bytes
  // and has taken `taken` since the beginning.
  Nanos Look(size_t owed, uint64_t taken, TimePoint now) {
    if (owed == 0 || !waits_ || taken >= goal_) {
      waits_ = owed > 0;
      goal_ = taken + kProgress;
      since_ = now;
    }
    return now - since_;
  }

 private:
  bool waits_ = false;
  uint64_t goal_ = 0;
  TimePoint since_;
};

}  // namespace curtail::gateway::internal
