// SPDX-License-Identifier: Apache-2.0
//
// policy_trial.h - runs policies under scenarios, in processes started for each run, and measures
// them.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "apps/shipped/application.h"
#include "curtail/adapt/envelope.h"
#include "curtail/deploy/tiers.h"
#include "curtail/term/console.h"
#include "tools/curtail/compare/policy_runs.h"
#include "tools/curtail/compare/scenario.h"

namespace curtail::tool {

// A policy as the user names it: what servers take as --policy. Behind one that a profile is
// optional for, or that the library does not know, may stand "+profile": it begins with the profile.
struct PolicyChoice {
  std::string label;
  std::string policy;          // for the server
  bool wants_profile = false;  // the server is given one
  bool switches = true;
  bool learns = false;  // it needs time before it is good
  // Its own, where it is not the one of TrialOptions.
  std::string profile;
  std::optional<double> cpu_weight;
};
// The labels of a list: between ';' if it has one, as arguments may have a ',', or else between ','.
std::vector<std::string> SplitPolicies(std::string_view list);
// Does not fail: CheckPolicy() refuses unknown policies.
PolicyChoice ParsePolicyChoice(std::string_view label);

struct TrialOptions {
  std::string profile;       // a file; empty if no policy needs one
  bool any_machine = false;  // it is taken from another one, too
  Nanos slo{0};              // zero: the server's default
  double cpu_weight = kCpuWeight;
};

// The subject of the comparison.
struct ComparisonPlan {
  std::vector<PolicyChoice> policies;
  std::vector<Scenario> scenarios;
  int rounds = 5;                 // at least
  int max_rounds = 5;             // if the fewer ones do not tell
  Nanos max_time = Nanos::max();  // no round that would end later is added
  uint64_t seed = 1;
  TrialOptions options;

  // Of the load of a round; starting the processes comes on top.
  Nanos RoundLength() const;
  // How often at most the rounds are judged.
  int looks() const;
};

// Runs all policies under all scenarios, round after round, each in processes started for this run
// alone; in each round another policy begins. Policies of a round and scenario get the same
// arrivals. After plan.rounds it adds rounds while Unsettled() (policy_judge.h) names a pair. Adds to `comparison.runs` what was measured, also when it fails. Errors: CANCELLED when
// stopped; those of Tiers; what kept a run from starting.
absl::Status RunTrials(const apps::Application& application, const deploy::LogFolder& logs,
                       const ComparisonPlan& plan, Console& console, const std::atomic<bool>& stop,
                       PolicyComparison& comparison);

}  // namespace curtail::tool
