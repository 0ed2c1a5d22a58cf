// SPDX-License-Identifier: Apache-2.0
//
// tier_load.h - how hard each service of an application worked under a load, and which of them saturate.
//
// Two things can be short, and each has a lever that gives more of it:
//
//  cpu      the time that the service's cgroup grants. Evidence: the share of its periods (cpu_groups.h) in which an
//           instance had used its time up and had to wait for the next. The slowness of other services does not raise it.
//  threads  of its pools. Evidence: the share of its calls' time that they waited for a thread. A service whose threads
//           wait for those that it calls shows it, too. So it comes after them.
//
// Plain values and pure functions; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/curtail/observe/vitals.h"

namespace curtail::tool {

enum class Lever { kCpu, kThreads };
// "cpu", "threads".
const char* NameOf(Lever lever);

// Of all instances of a service together, if nothing else is said.
struct TierLoad {
  std::string name;
  double cpus = 0;          // used
  double throttled = 0;     // of the instance that was throttled most, 0 to 1
  double queue_wait_s = 0;  // of a call, mean
  double wait_share = 0;    // 0 to 1
};

// Of each service between two looks at it. `throttled`: by service, 0 to 1.
std::vector<TierLoad> TierLoads(const ApplicationVitals& before, const ApplicationVitals& now,
                                const std::map<std::string, double>& throttled);

// From here on a service is saturated.
inline constexpr double kSaturatedThrottled = 0.05;
inline constexpr double kSaturatedWait = 0.3;

struct Saturation {
  std::string tier;
  Lever lever = Lever::kCpu;
  double share = 0;      // the evidence, 0 to 1
  std::string evidence;  // in words
};

// By service, those that it calls.
using TierCalls = std::map<std::string, std::vector<std::string>>;

// The saturated ones by one of `levers`, the most saturated first; those that may only wait for another saturated one last.
std::vector<Saturation> SaturatedTiers(const std::vector<TierLoad>& tiers, const TierCalls& calls,
                                       const std::vector<Lever>& levers);

}  // namespace curtail::tool
