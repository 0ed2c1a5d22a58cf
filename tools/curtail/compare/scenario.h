// SPDX-License-Identifier: Apache-2.0
//
// scenario.h - the loads under which policies are compared: a rate over time, and the parts of it that are
// reported.
//
// Plain values and pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/load/drive/rate_curve.h"

namespace curtail::tool {

// A part of a scenario that gets numbers of its own. Times count from the start of the run, warm-up included.
struct Phase {
  std::string name;       // "100/s up", "spike", "rising low"
  double rate_per_s = 0;  // the mean
  Nanos from{0};
  Nanos to{0};  // exclusive
  // The load neither changes in it nor did so violently just before: a policy has no reason to switch often.
  bool steady = false;
};

// A Scenario is a load to offer. Its phases go from the end of the warm-up to the end of the curve, without
// gaps.
struct Scenario {
  std::string name;  // "steady", "flash-crowd", "ramp", "diurnal"
  std::string text;  // a line for people
  RateCurve curve;   // warm-up included: what Schedule::Make() takes
  Nanos warmup{0};   // at the first rate; what RunOptions::warmup takes
  std::vector<Phase> phases;
};

// The phase of this name; null if there is none.
const Phase* FindPhase(const Scenario& scenario, std::string_view name);

// The makers below check what they are given. Errors: INVALID_ARGUMENT that names the value and what would
// be right.

// Loads up and down again, `each` long: "100/s up", "500/s up", "2000/s", "500/s down", "100/s down", as in
// figure 14 of muTune (Sriraman and Wenisch, OSDI 2018). A low load lasts up to four times as long, so that
// its p99 is one of at least about 300 requests where that suffices. REQUIRES, checked: `loads_per_s` rise
// and are positive, 50 at most.
absl::StatusOr<Scenario> SteadyScenario(const std::vector<double>& loads_per_s, Nanos each, Nanos warmup);

// A low load with a spike, as in table 2 of muTune: phases "before", "spike", "first second after", "after".
// REQUIRES, checked: low < high, `before` and `spike` positive, `after` over a second.
absl::StatusOr<Scenario> FlashCrowdScenario(double low_per_s, double high_per_s, Nanos before, Nanos spike,
                                            Nanos after, Nanos warmup);

// Up for half of the length and down again, in straight lines: phases "rising low", "rising high", "falling
// high", "falling low", a quarter each. REQUIRES, checked: low < high.
absl::StatusOr<Scenario> RampScenario(double low_per_s, double high_per_s, Nanos length, Nanos warmup);

// A day: the shape diurnal of curtail/load/drive/shape.h. Phases "quiet 1", "busy" (the middle third), "quiet 2".
// REQUIRES, checked: low < high.
absl::StatusOr<Scenario> DiurnalScenario(double low_per_s, double high_per_s, Nanos length, Nanos warmup);

}  // namespace curtail::tool
