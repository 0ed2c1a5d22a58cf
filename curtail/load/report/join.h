// SPDX-License-Identifier: Apache-2.0
//
// join.h - the results of several generators that ran at once, as one.
//
// Pure function; any thread.
#pragma once

#include <vector>

#include "curtail/load/report/result.h"

namespace curtail {

// The result of all `parts`, which sent shares of `plan` at the same time. Counters, histograms and
// rates are sums, so percentiles are of all requests. A second of the series has the sums, and the
// higher p50 and p99. Of the checks of assumptions it has the worst. It is judged as a whole.
// REQUIRES: there are parts.
LoadResult JoinResults(LoadPlan plan, const std::vector<LoadResult>& parts);

}  // namespace curtail
