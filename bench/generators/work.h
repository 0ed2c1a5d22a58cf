// SPDX-License-Identifier: Apache-2.0
//
// work.h - the two things that are measured: whether the numbers are true, and what they cost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/common/report.h"
#include "generator.h"
#include "options.h"

namespace curtail::bench {

// A generator's report of a service, and the truth.
struct TruthRow {
  std::string scenario;  // "exponential", "stall"
  std::string generator;
  std::string load;
  std::string error;  // why there is nothing else
  GeneratorRun said;
  // From the target's log of this very run. Exponential: the times that requests took. Stall: the latencies of
  // users that arrive at the scenario's rate, whatever the generator did.
  Percentiles truth;
  // Open loop, exponential: the p99 of how much later than by its schedule a request reached the service, with
  // the start that suits it best; in ms.
  std::optional<double> late_p99_ms;
};

// Runs all generators against both services. A minute; --quick 20 seconds. Ends early when the session is stopped.
std::vector<TruthRow> MeasureTruth(const Options& options, Session& session);

// One generator under one load, a value a round.
struct CostCell {
  std::string error;               // the first one
  std::vector<double> cpu_us;      // for each request, without the start
  std::vector<double> rate_per_s;  // answered
  int void_rounds = 0;             // in which it declared its numbers void
};
struct CostResults {
  std::vector<std::string> generators;
  std::vector<std::string> loads;
  // By generator: CPU time of a start in ms, a value a round.
  std::map<std::string, std::vector<double>> start_ms;
  // By load and generator.
  std::map<std::string, std::map<std::string, CostCell>> cells;
};

// Runs rounds x loads x generators, in this order of nesting, all against one target; ends early
// when the session is stopped.
absl::StatusOr<CostResults> MeasureCost(const Options& options, Session& session);

// A limit that curtail load is to keep: its CPU time a request is at most `limit` times that of the cheapest form of
// the other.
struct Bar {
  std::string load;
  std::string curtail;  // which form of it
  std::string other;    // which generator it is compared with, in its cheapest form
  double ratio = 0;
  double limit = 0;

  bool met() const { return ratio <= limit; }
};
// Of what was measured: ghz at a third, h2load at one and a half.
std::vector<Bar> BarsOf(const CostResults& results);

// True if there is a result for every generator that is there.
bool AllWell(const std::vector<TruthRow>& rows);
bool AllWell(const CostResults& results);

Report ReportOf(const Options& options, const Machine& machine, const std::vector<TruthRow>& rows);
Report ReportOf(const Options& options, const Machine& machine, const CostResults& results);

}  // namespace curtail::bench
