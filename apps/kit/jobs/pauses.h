// SPDX-License-Identifier: Apache-2.0
//
// pauses.h - how long work that failed rests before the next attempt.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "curtail/base/clock.h"

namespace curtail::apps {

inline constexpr Nanos kFirstPause = std::chrono::milliseconds(50), kLastPause = std::chrono::seconds(10);

// Returns the pause after so many failures: each doubles kFirstPause, up to kLastPause.
constexpr Nanos PauseAfter(int64_t failures) {
  return std::min(kLastPause, kFirstPause * (int64_t{1} << std::min<int64_t>(failures, 16)));
}

}  // namespace curtail::apps
