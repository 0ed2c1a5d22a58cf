// SPDX-License-Identifier: Apache-2.0
//
// join.h - the results of several generators that ran at once, as one.
//
// Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/report/result.h"

namespace curtail {

// The result of all `parts`, which sent shares of `plan` at the same time. Counters, histograms and
// rates are sums, so percentiles are of all requests. A second of the series has the sums, and the
// higher p50 and p99. Of the checks of assumptions it has the worst. It is judged as a whole.
// REQUIRES: there are parts.
LoadResult JoinResults(LoadPlan plan, const std::vector<LoadResult>& parts);

// The report of one generator, whose plan is a share of what all sent.
struct ShareReport {
  std::string name;  // for people: its file
  LoadReport report;
};

// The report of a test whose shares several generators sent, run by run, with the first one's
// thresholds. A run is void if a share is missing, interrupted or void itself, or if the generators
// started further apart than 1 % of the measured window; the reason names the generator.
// Errors: INVALID_ARGUMENT, which names the report: it is not a share, has the share of another, or
// is of another plan. REQUIRES: there are parts.
absl::StatusOr<LoadReport> JoinReports(const std::vector<ShareReport>& parts);

}  // namespace curtail
