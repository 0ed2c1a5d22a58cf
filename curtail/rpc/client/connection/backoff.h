// SPDX-License-Identifier: Apache-2.0
//
// backoff.h - waits that grow from failure to failure.
#pragma once

#include <chrono>
#include <cstdint>

#include "curtail/base/clock.h"
#include "curtail/base/mix.h"

namespace curtail::internal {

// A Backoff is `initial` long at first, then `factor` times the one before, up to `max`. Thread-compatible.
struct Backoff {
  static constexpr double kFactor = 1.6;

  bool began() const { return last != Nanos::zero(); }
  void Reset() { last = Nanos::zero(); }
  // The next wait, with 20 % jitter from the clock's low digits: only to keep clients from acting in step.
  Nanos Next(Nanos initial, Nanos max, TimePoint now) {
    last = began() ? Grown(last, kFactor, max) : initial;
    return Jittered(last, Mix(static_cast<uint64_t>(now.time_since_epoch().count())));
  }
  // `wait` times `factor`, up to `max`.
  static Nanos Grown(Nanos wait, double factor, Nanos max) {
    const double grown = static_cast<double>(wait.count()) * factor;
    return grown < static_cast<double>(max.count()) ? Nanos(static_cast<int64_t>(grown)) : max;
  }
  // `wait` times a factor in [0.8, 1.2) that `random` decides.
  static Nanos Jittered(Nanos wait, uint64_t random) {
    return std::chrono::duration_cast<Nanos>(wait * (0.8 + 0.4 * static_cast<double>(random % 1024) / 1024));
  }

  Nanos last{0};
};

}  // namespace curtail::internal
