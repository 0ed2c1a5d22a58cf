// SPDX-License-Identifier: Apache-2.0
//
// policy_testing.h - made-up comparisons of policies, for tests of what is said about them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/curtail/compare/policy_runs.h"

namespace curtail::tool {

// The latency of each request of a phase under a policy in a round; Nanos(-1): the run is void.
using MadeUpLatency = std::function<Nanos(size_t policy, const Phase& phase, int round)>;

// Evenly spaced requests under a steady scenario (100 to 1000/s), a flash crowd (100 to 2000/s), and a ramp
// (100 to 900/s). Requests of a second or more have failed. The first policy goes from SIP1 to SDB1-16 2 ms
// into the spike and back 50 ms after it; others keep an SDB config each, the third one SDB1-50.
PolicyComparison MadeUpComparison(const std::vector<std::string>& policies, int rounds,
                                  const MadeUpLatency& latency);

// Five rounds of "mutune", "fm", "static:SIP1" and "static:SDB1-50". mutune has the lowest p99 everywhere,
// but for SIP1 at 100/s, which cannot be told from it; SIP1 takes over a second in the spike and after it.
PolicyComparison SampleComparison();

// Rounds in which only the p99 and the config are filled, as far as the judge reads them: `p99_us` of each
// policy, round and phase of one steady scenario with `phases` loads; a p99 below 0: the run is void. All
// policies have a config of their own.
using MadeUpP99 = std::function<double(size_t policy, int round, size_t phase)>;
PolicyComparison BareComparison(size_t policies, int rounds, size_t phases, const MadeUpP99& p99_us);

}  // namespace curtail::tool
