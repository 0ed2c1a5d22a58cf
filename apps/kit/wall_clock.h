// SPDX-License-Identifier: Apache-2.0
//
// wall_clock.h - the time of day, for what is kept. For how long something takes, see curtail/base/clock.h.
#pragma once

#include <chrono>
#include <cstdint>

namespace curtail::apps {

// Milliseconds since 1970.
inline int64_t NowMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace curtail::apps
