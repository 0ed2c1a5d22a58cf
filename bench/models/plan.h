// SPDX-License-Identifier: Apache-2.0
//
// plan.h - what the flags ask for: configs, loads, and how long each cell takes. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/exec/config.h"

namespace curtail::models {

// An open loop cannot reach what a closed one does, whose requests arrive in batches: half of it is where
// the first models give in.
inline constexpr char kDefaultLoads[] = "50,3%,10%,20%,35%,50%";
inline constexpr char kQuickLoads[] = "200,3%,10%,20%,35%,50%";

// A load as given: requests a second, or a percentage of the highest throughput that any config reached.
struct LoadSpec {
  double value = 0;
  bool percent = false;
};

// "50,1k,25%". Errors: INVALID_ARGUMENT.
absl::StatusOr<std::vector<LoadSpec>> ParseLoads(std::string_view text);
// Requests a second, ascending, no two alike; those from percentages have two significant digits and are at
// least 1.
std::vector<double> ResolveLoads(const std::vector<LoadSpec>& specs, double saturation_per_s);

// "SIB1,SDB1-16". Errors: INVALID_ARGUMENT, also for a config given twice.
absl::StatusOr<std::vector<Config>> ParseConfigs(std::string_view text);

// Lengths of the parts of a run.
struct Timing {
  double cell_s = 1.5;
  double warmup_s = 0.3;
  double pick_s = 1;  // a measurement that picks pool sizes
  // A p99 of fewer requests says little, so low loads are given more time, up to this many times cell_s.
  double wanted_requests = 300;
  double max_stretch = 4;
  int rounds = 3;

  static Timing Quick();
  // Of the measured part at `rate_per_s`; a closed loop takes cell_s.
  double CellSeconds(double rate_per_s) const;
  // About how long everything takes: candidates, then rounds of chosen configs.
  double TotalSeconds(size_t candidates, size_t configs, const std::vector<double>& loads) const;
};

inline Nanos Seconds(double s) { return Nanos(static_cast<int64_t>(s * 1e9)); }

}  // namespace curtail::models
