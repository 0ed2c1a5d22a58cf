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
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/common/report.h"
#include "options.h"
#include "stack.h"

namespace curtail::bench {

inline constexpr uint64_t kFewRequests = 300;
inline constexpr uint64_t kManyRequests = 1300;
// How many requests are under way: one, and enough that a stack can share work among them.
inline constexpr uint32_t kCountedLoads[] = {1, 16};

// A stack and a setup, and what the rounds counted.
struct Instructions {
  StackInfo stack;
  Setup setup;
  std::string note;                         // why it could not be counted
  std::vector<std::vector<double>> counts;  // for a request, by kCountedLoads
};

// Counts for all stacks and setups. Ends early when the session is stopped.
std::vector<Instructions> CountInstructions(const Options& options, Session& session);

Report ReportOf(const Options& options, const Machine& machine, const std::vector<Instructions>& results);

}  // namespace curtail::bench
