// SPDX-License-Identifier: Apache-2.0
//
// policy_cost.h - what the p99 of a policy costs: CPU of the server under test.
//
// Polling buys latency with CPU, so neither number alone says which policy to take. Policies that had the same config in
// force have one cost, of the runs of them all, and one name in the texts, "mutune = static:auto". Pure functions; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/curtail/compare/policy_runs.h"

namespace curtail::tool {

struct PolicyCost {
  double p99_us = 0;      // the geometric mean over all cells of the medians over the rounds
  double cpu_s = 0;       // in a round: the sum over the scenarios of the medians
  bool on_front = false;  // no other policy has less of one and no more of the other
};

// Of each policy; absent for one without a valid run under some scenario. Cells are those in which all others
// have a p99.
std::vector<std::optional<PolicyCost>> CostsOf(const PolicyComparison& comparison);

// "By the medians, no other policy has both a lower p99 and less CPU than mutune (1.21 ms, 3.4 s)."; empty
// with fewer than two costs.
std::string FrontText(const PolicyComparison& comparison);

// Judges each policy against the cheapest one whose p99 is within 10 % of the lowest: "Within 10 % of the lowest
// p99 (1.21 ms) static:FIB1 is the cheapest (0.4 s of CPU); mutune takes 1.02 times its CPU. Not there: fm (1.3 times
// the lowest p99, 1.1 times the CPU)."; empty with fewer than two costs.
std::string ReachText(const PolicyComparison& comparison);

}  // namespace curtail::tool
