// SPDX-License-Identifier: Apache-2.0
//
// measure.h - runs the stacks in turns and keeps what each round saw.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/common/report.h"
#include "options.h"
#include "stack.h"

namespace curtail::bench {

// One cell of one round. What the mid-tier consumed is per request answered.
struct Measurement {
  double p50_us = 0;
  double p99_us = 0;
  double qps = 0;
  double failed = 0;
  double mid_cpu_us = 0;
  double mid_resident_mib = 0;  // after the cell; not per request
  double mid_switches = 0;
  std::optional<double> mid_user_instructions;
  std::optional<double> mid_kernel_instructions;
};

// Of one stack in one setup.
struct StackResults {
  StackInfo stack;
  Setup setup;
  std::map<std::string, std::vector<Measurement>> by_cell;  // a Measurement a round
  absl::Status first_error;  // of any request or server; OK where nothing was built
};

// True if everything that was built was measured, there was anything, and no request failed.
bool AllWell(const std::vector<StackResults>& results);

// How long Measure() takes, about.
double ExpectedSeconds(const Options& options);

// The rounds of a cell, or null if there are none.
const std::vector<Measurement>* Find(const StackResults& results, const std::string& cell);

// Runs all rounds, all setups and stacks in each. A stack that fails in a round is noted and tried again in the next,
// one that was not built is only listed. Ends early when the session is stopped.
std::vector<StackResults> Measure(const Options& options, Session& session);

Report ReportOf(const Options& options, const Machine& machine, const std::vector<StackResults>& results);
// Three numbers a stack.
Table ShortTable(const std::vector<StackResults>& results);

}  // namespace curtail::bench
