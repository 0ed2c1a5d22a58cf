// SPDX-License-Identifier: Apache-2.0
//
// wake_margin.h - how long before a send its thread wakes up, as timers fire late.
#pragma once

#include <algorithm>
#include <optional>

#include "curtail/base/clock.h"

namespace curtail::internal {

// A WakeMargin follows the 90th percentile of how late the timers of this machine are, at this load: it rises by nine
// steps when one was later and falls by one step when it was not, which balance there. At a higher percentile the thread
// would watch the clock ahead of every send for the sake of few. The steps begin large, so that it comes near within a
// hundred sends. Thread-compatible.
class WakeMargin {
 public:
  // A fixed margin, or one that is learnt.
  explicit WakeMargin(std::optional<Nanos> fixed) : learns_(!fixed), margin_(fixed.value_or(kFirst)) {}

  Nanos get() const { return margin_; }
  // A timer was late by so much.
  void Fired(Nanos late) {
    if (!learns_) return;
    margin_ = std::clamp(margin_ + (late > margin_ ? 9 * step_ : -step_), kLeast, kMost);
    step_ = std::max(step_ * 19 / 20, kLeastStep);
  }

 private:
  static constexpr Nanos kFirst = std::chrono::microseconds(200);
  static constexpr Nanos kFirstStep = std::chrono::microseconds(10);
  static constexpr Nanos kLeastStep{200};
  static constexpr Nanos kLeast = std::chrono::microseconds(10);
  static constexpr Nanos kMost = std::chrono::milliseconds(1);

  const bool learns_;
  Nanos margin_;
  Nanos step_ = kFirstStep;
};

}  // namespace curtail::internal
