// SPDX-License-Identifier: Apache-2.0
//
// page.h - the bounds of lists in requests and replies.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

// Ids in one request, and entries in a page of another service.
inline constexpr int kMostIds = 1000;

// For a call that the answer can do without: a quarter of the time that is left, and 100 ms at most.
inline Nanos OptionalTime(Deadline deadline) {
  return std::min<Nanos>(deadline.Remaining() / 4, std::chrono::milliseconds(100));
}

inline uint32_t LimitOf(uint32_t asked) { return asked == 0 ? 20 : std::min<uint32_t>(asked, 100); }
inline uint32_t EdgeLimitOf(uint32_t asked) {
  return asked == 0 ? kMostIds : std::min<uint32_t>(asked, kMostIds);
}
inline uint64_t BeforeOf(uint64_t asked) {
  constexpr auto kNewest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return asked == 0 ? kNewest : std::min(asked, kNewest);
}

inline absl::Status CheckCount(int count, int most, const char* what) {
  if (count <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(Join(count, " ", what, "; at most ", most, " are taken at once"));
}

}  // namespace curtail::apps
