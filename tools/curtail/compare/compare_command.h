// SPDX-License-Identifier: Apache-2.0
//
// compare_command.h - `curtail compare`: policies against each other, under steady loads, a flash crowd, and a day.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "apps/shipped/application.h"
#include "curtail/term/console.h"
#include "tools/curtail/compare/policy_runs.h"
#include "tools/curtail/compare/policy_trial.h"

namespace curtail::tool {

struct CompareFlags {
  std::string application;
  apps::ApplicationOptions options;
  std::string profile;
  bool any_machine = false;
  std::string policies;  // empty: those of DefaultPolicies()
  std::string scenarios = "steady,flash-crowd,ramp,diurnal";
  std::string loads;        // of `steady`; empty: between the trained ones
  std::string flash_crowd;  // LOW..HIGH, also of `ramp` and `diurnal`; empty: from the profile
  double seconds = 2;       // of each steady load
  int rounds = 5;           // at least
  int max_rounds = 0;       // 0: kMaxRounds, or as `rounds` if that is more or with `quick`
  double max_minutes = 120;
  uint64_t seed = 1;
  double slo_ms = 10;
  double cpu_weight = kCpuWeight;
  bool quick = false;
  bool dry_run = false;
  std::string json;
  std::string html;
};

// Runs it. Returns the exit code. No process that it starts is left when it returns, or when this process dies.
int RunCompare(const CompareFlags& flags, Console& console, const std::atomic<bool>& stop);

// A comparison by that plan, on this machine, of which no run is there yet.
PolicyComparison DescribeComparison(const ComparisonPlan& plan);
// Prints the tables and writes the files whose names are not empty. Returns the exit code.
int ReportComparison(const PolicyComparison& comparison, const std::string& json, const std::string& html,
                     Console& console);

}  // namespace curtail::tool
