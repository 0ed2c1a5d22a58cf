// SPDX-License-Identifier: Apache-2.0
//
// token_bucket.h - how many calls may begin a second.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "curtail/base/clock.h"

namespace curtail::gateway::internal {

// A TokenBucket holds `burst` tokens at most and gets `rate` a second. It keeps the time at which it will be full (the
// generic cell rate algorithm), so it needs no timer. Thread-compatible.
class TokenBucket {
 public:
  // REQUIRES: both are greater than 0.
  TokenBucket(double rate, double burst)
      : each_(std::max<Nanos>(Nanos(1), Nanos(static_cast<int64_t>(std::min(1e9 / rate, kLongest))))),
        room_(static_cast<int64_t>(std::min(static_cast<double>(each_.count()) * burst, kLongest))) {}

  // Takes a token and returns 0, or takes none and returns the time until there is one. `now` does not go back.
  Nanos Take(TimePoint now) {
    const TimePoint full = std::max(full_, now) + each_;
    if (full - now > room_) return full - now - room_;
    full_ = full;
    return Nanos::zero();
  }

 private:
  static constexpr double kLongest = 1e17;  // three years, in ns

  const Nanos each_, room_;
  TimePoint full_ = TimePoint::min();
};

}  // namespace curtail::gateway::internal
