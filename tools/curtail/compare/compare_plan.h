// SPDX-License-Identifier: Apache-2.0
//
// compare_plan.h - which policies, loads and scenarios a comparison has, where the user does not
// say. Pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/adapt/profile.h"
#include "tools/curtail/compare/policy_trial.h"
#include "tools/curtail/compare/scenario.h"

namespace curtail::tool {

// A profile's account of the ends of the range of loads.
struct LoadRange {
  double low_per_s = 0;
  // The load that the config of the highest rate sustains for certain, and, where there is such a load, the
  // best config at the low load does not.
  double high_per_s = 0;
  Config low;   // the best config at low_per_s
  Config peak;  // and at the highest load that any config sustains
};
// Errors: INVALID_ARGUMENT when no config of the profile sustains any load. With one load, low and
// high are that.
absl::StatusOr<LoadRange> RangeOf(const Profile& profile);

// The policies that are compared when the user names none: those of which the table says so
// (PolicyKind::compared), and `fixed` behind the first, against which the others are judged.
std::vector<std::string> UsualPolicies(std::span<const std::string> fixed);
// The same with these for the fixed ones: "auto", with which servers begin, unless the service is of
// continuations alone, and the best configs at both ends of the range. Without the policies that the
// profile does not suffice for.
std::vector<std::string> DefaultPolicies(const LoadRange& range, const Profile& profile);

// OK if a server could be started under this policy. With a program of the user's own, a name that the library does not
// know is left to the program, which says what it knows. Errors: INVALID_ARGUMENT that says what is missing. `profile` may
// be null.
absl::Status CheckPolicy(const PolicyChoice& choice, const Profile* profile, bool own_program = false);

// The scenario of this name over that range; `loads` and `each` are for "steady". `scale` shortens
// what has no length of its own. Errors: INVALID_ARGUMENT, also for a name that there is not.
absl::StatusOr<Scenario> MakeScenario(std::string_view name, double low_per_s, double high_per_s,
                                      const std::vector<double>& loads, Nanos each, double scale);

}  // namespace curtail::tool
