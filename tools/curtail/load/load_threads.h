// SPDX-License-Identifier: Apache-2.0
//
// load_threads.h - a run that several threads send at once.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/drive/live.h"
#include "curtail/load/report/result.h"

namespace curtail::tool {

// The share of sender number `sender` of `senders` in `count` things.
inline uint64_t ShareOf(uint64_t count, int sender, int senders) {
  const auto n = static_cast<uint64_t>(senders);
  return count / n + (static_cast<uint64_t>(sender) < count % n ? 1 : 0);
}

// Calls `run` with 0, 1, ... on a thread of its own each, and returns their results in order. Meanwhile `shown` has the
// sums of what they count. Errors: the first of the threads'.
absl::StatusOr<std::vector<LoadResult>> RunThreads(
    int threads, const std::function<absl::StatusOr<LoadResult>(int thread, Live* live)>& run, Live* shown);

}  // namespace curtail::tool
