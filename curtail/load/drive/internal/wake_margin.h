// SPDX-License-Identifier: Apache-2.0
//
// wake_margin.h - how long before a send its thread wakes up, as timers fire late.
#pragma once

#include <algorithm>
#include <optional>

#include "curtail/base/clock.h"

namespace curtail::internal {

// A WakeMargin follows the 99th percentile of how late the timers of this machine are, at this load: it rises by
// 99 parts when one was later and falls by one part when it was not, which balance there. Thread-compatible.
class WakeMargin {
 public:
  // A fixed margin, or one that is learnt.
  explicit WakeMargin(std::optional<Nanos> fixed) : learns_(!fixed), margin_(fixed.value_or(kFirst)) {}

  Nanos get() const { return margin_; }
  // A timer was late by so much.
  void Fired(Nanos late) {
    if (!learns_) return;
    margin_ = std::clamp(margin_ + (late > margin_ ? 99 * kPart : -kPart), kLeast, kMost);
  }

 private:
  static constexpr Nanos kPart{100};
  static constexpr Nanos kFirst = std::chrono::microseconds(200);
  static constexpr Nanos kLeast = std::chrono::microseconds(10);
  static constexpr Nanos kMost = std::chrono::milliseconds(1);

  const bool learns_;
  Nanos margin_;
};

}  // namespace curtail::internal
