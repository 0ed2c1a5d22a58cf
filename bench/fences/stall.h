// SPDX-License-Identifier: Apache-2.0
//
// stall.h - the parts of the study in which a leaf becomes slow for a while: leaves, shared services, turns.
//
// A run has four phases of equal length. In the first only the guarded class, the first one, is sent; then all are. In
// the third phase leaf B is slower by kSlowFactor.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/fences/drive.h"
#include "bench/fences/results.h"
#include "bench/fences/serve.h"

namespace curtail::fences {

struct StallClass {
  std::string_view name;
  std::string_view method;  // its full path
  double rate_per_s;
};

struct StallScenario {
  std::string_view name;
  std::string_view title;
  std::vector<StallClass> classes;
  // The variants by default, the baseline first.
  std::string_view variants = "SDB1-16,ADB1-4-4,SDB1-16+on,SDB1-16+strict";
  int levels = 1;       // shared services, one behind the other
  double slack_ms = 0;  // Part::slack_ms
};

// "stall", "bottleneck", "levels".
std::vector<StallScenario> StallScenarios();

// The classes of a scenario as requests of one run. Errors: those of RateCurve.
absl::StatusOr<std::vector<ClassPlan>> PlansOf(const StallScenario& scenario, Nanos warmup, Nanos phase);

// A StallStudy drives the load generator. Thread-compatible.
class StallStudy {
 public:
  explicit StallStudy(const Study& study);

  // Starts the processes that the scenario needs, and measures all variants in turns, all rounds. `part` has its rows
  // already. Errors: those of Tier and Drive(); CANCELLED when stopped. What was measured is in `part`.
  absl::Status Measure(const StallScenario& scenario, Part* part);

 private:
  // A chain of shared services, the front of it last.
  using Chain = std::vector<std::unique_ptr<Tier>>;

  absl::Status StartLeaves();
  absl::Status Extend(const Variant& variant, int levels, Chain* chain);
  absl::StatusOr<Cell> MeasureCell(const StallScenario& scenario, const Chain& chain, uint64_t seed);
  absl::Status SlowDown(TimePoint from, TimePoint until);

  const Study& study_;
  const Nanos phase_;
  const Nanos warmup_;
  std::unique_ptr<Tier> leaf_a_, leaf_b_;
  std::vector<Chain> chains_;  // of the variants, in their order
};

}  // namespace curtail::fences
