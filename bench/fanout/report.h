// SPDX-License-Identifier: Apache-2.0
//
// report.h - the results as a table, as Markdown and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure.h"
#include "options.h"

namespace curtail::bench {

// Middle, smallest and largest of the rounds.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};
// REQUIRES: not empty.
Spread SpreadOf(std::vector<double> values);

// How this machine was before the run.
struct Machine {
  int cpus = 0;
  double load_average = 0;  // of the last minute
  double busy_cpus = 0;     // in use by others while we did nothing
  bool Disturbed() const { return busy_cpus > 0.2; }
};
// Takes half a second, in which this process sleeps.
Machine LookAtMachine();

// How curtail's best compares; nothing where one of the two was not measured.
struct Ratios {
  std::optional<double> p50_to_raw;         // concurrency 1, less is better
  std::optional<double> p50_to_grpc;        // concurrency 1, less is better
  std::optional<double> saturated_to_grpc;  // answers a second, more is better
};
Ratios RatiosOf(const std::vector<StackResults>& results);

std::string ToTable(const Options& options, const Machine& machine, const std::vector<StackResults>& results);
std::string ToMarkdown(const Options& options, const Machine& machine,
                       const std::vector<StackResults>& results);
std::string ToJson(const Options& options, const Machine& machine, const std::vector<StackResults>& results);

}  // namespace curtail::bench
