// SPDX-License-Identifier: Apache-2.0
//
// page.h - the bounds of requests that several services share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"

namespace curtail::social {

// Ids in one request, and entries in a page of another service.
inline constexpr int kMostIds = 1000;
// Posts in one request of read-post: each may have two authors to look at.
inline constexpr int kMostViewed = kMostIds / 2;
// A text to search for, and what a part of the index finds at once.
inline constexpr size_t kMostQueryBytes = 256;
inline constexpr uint32_t kMostHits = 1100;

// An id is 41 bits of milliseconds, kMachineBits of the machine, kCounterBits of a counter.
inline constexpr int kMachineBits = 10, kCounterBits = 12;
// Ids that were given so long before `id`, or earlier, are less.
inline uint64_t IdBefore(uint64_t id, std::chrono::milliseconds age) {
  return id - std::min(id, static_cast<uint64_t>(age.count()) << (kMachineBits + kCounterBits));
}

// For a call that the answer can do without: a quarter of the time that is left, and 100 ms at most.
inline Nanos OptionalTime(Deadline deadline) {
  return std::min<Nanos>(deadline.Remaining() / 4, std::chrono::milliseconds(100));
}

// Stands in a text for a URL, before its code.
inline constexpr char kShortPrefix[] = "http://short-url/";

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

}  // namespace curtail::social
