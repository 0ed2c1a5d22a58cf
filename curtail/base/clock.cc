// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/clock.h"

namespace curtail {

TimePoint Now() { return std::chrono::steady_clock::now(); }

Deadline Deadline::In(Nanos timeout) {
  const TimePoint now = curtail::Now();
  if (timeout >= TimePoint::max() - now) return Infinite();
  return Deadline(now + timeout);
}

Nanos Deadline::Remaining() const {
  if (infinite()) return Nanos::max();
  const Nanos left = when_ - curtail::Now();
  return left > Nanos::zero() ? left : Nanos::zero();
}

const TimeSource& RealTime() {
  class Real final : public TimeSource {
    TimePoint Now() const override { return curtail::Now(); }
  };
  static const Real real;
  return real;
}

}  // namespace curtail
