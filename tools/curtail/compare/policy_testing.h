// SPDX-License-Identifier: Apache-2.0
//
// policy_testing.h - made-up comparisons of policies, for tests of what is said about them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/curtail/compare/policy_runs.h"

namespace curtail::tool {

// What each request of a phase takes under a policy in a round; Nanos(-1): the run is void.
using MadeUpLatency = std::function<Nanos(size_t policy, const Phase& phase, int round)>;

// Evenly spaced requests under a steady scenario (100 to 1000/s), a flash crowd (100 to 2000/s), and a ramp
// (100 to 900/s). Requests of a second or more have failed. The first policy goes from SIP1 to SDB1-16 2 ms
// into the spike and back 50 ms after it; others keep SDB1-50.
PolicyComparison MadeUpComparison(const std::vector<std::string>& policies, int rounds,
                                  const MadeUpLatency& latency);

// Three rounds of "mutune", "fm", "static:SIP1" and "static:SDB1-50". mutune has the lowest p99 everywhere,
// but for SIP1 at 100/s, which cannot be told from it; SIP1 takes over a second in the spike and after it.
PolicyComparison SampleComparison();

}  // namespace curtail::tool
