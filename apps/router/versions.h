// SPDX-License-Identifier: Apache-2.0
//
// versions.h - what numbers may be versions of writes: nanoseconds of the world's clock, more or less.
#pragma once

#include <chrono>
#include <cstdint>

namespace curtail::router {

// Where a mid-tier that starts now begins to count.
inline uint64_t VersionOfNow() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// The greatest that is believed: a day ahead of the clock. If one of the greatest numbers there are were
// taken for the newest version, no write could follow it.
inline uint64_t GreatestVersion() {
  constexpr std::chrono::nanoseconds kDay = std::chrono::hours(24);
  return VersionOfNow() + static_cast<uint64_t>(kDay.count());
}

}  // namespace curtail::router
