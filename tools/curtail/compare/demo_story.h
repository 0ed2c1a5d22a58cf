// SPDX-License-Identifier: Apache-2.0
//
// demo_story.h - the two cases that `curtail demo` makes, and what its measurements say of them.
//
// A service that may use fibers often needs one config only: then adaptation has to find that config, and to cost
// nothing. One whose libraries block a thread cannot use fibers. There a few threads answer soonest at low loads, many
// threads get through a crowd, and no static config does both. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "curtail/adapt/profile.h"
#include "tools/curtail/compare/policy_runs.h"
#include "tools/curtail/compare/policy_trial.h"

namespace curtail::tool {

// The label of the policy that chooses among synchronous configs, by latency alone.
inline constexpr char kBlockingPolicy[] = "mutune without fibers";

// The synchronous configs of a profile, with their cells.
Profile WithoutFibers(const Profile& profile);

// mutune and "auto" for the first case; for the second one mutune with `blocking`, which lies in the file
// `blocking_path`, and the configs that it chooses at the lowest and at the highest load.
std::vector<PolicyChoice> DemoPolicies(const Profile& profile, const Profile& blocking,
                                       const std::string& blocking_path);

// Takes all runs as valid, and notes why, if some policy has no valid one: a busy machine shows the same, less
// exactly.
void BelieveIfNoneCanBe(PolicyComparison& comparison);

// A line for each case of which the policies ran, with the interval of the ratio and whether a win is believed, and one
// with the CPU of each policy.
std::vector<std::string> DemoStory(const PolicyComparison& comparison, const Profile& profile);

}  // namespace curtail::tool
