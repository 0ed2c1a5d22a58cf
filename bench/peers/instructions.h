// SPDX-License-Identifier: Apache-2.0
//
// instructions.h - user-level instructions of the mid-tier for each request, counted by valgrind's callgrind.
//
// A count does not depend on what else the machine does. Each number is the difference between two runs with different
// numbers of requests, which takes out starting and ending. A mid-tier that polls is left out: it would be charged for
// waiting.
// How requests share work differs from run to run, by some half a percent: for less, take the median of some
// rounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "options.h"

namespace curtail::bench {

inline constexpr uint64_t kFewRequests = 300;
inline constexpr uint64_t kManyRequests = 1300;
// How many requests are under way: one, and enough that a stack can share work among them.
inline constexpr uint32_t kCountedLoads[] = {1, 16};

struct Instructions {
  std::string stack;
  std::string setup;
  // A request, by kCountedLoads: the median of the rounds; nothing where it could not be counted.
  std::vector<std::optional<double>> per_request;
  std::string note;  // why not
};

// Counts for all stacks and setups. Ends early when the session is stopped.
std::vector<Instructions> CountInstructions(const Options& options, Session& session);

}  // namespace curtail::bench
