// SPDX-License-Identifier: Apache-2.0
//
// trial.h - one trial of a search for the highest rate. Pure function; any thread.
#pragma once

#include <string>
#include <vector>

#include "curtail/load/drive/rate_search.h"
#include "curtail/load/report/result.h"
#include "curtail/load/report/threshold.h"

namespace curtail::tool {

// If the conditions hold in a run; `why` has the numbers, or why the run is void. A server that is too slow fails,
// however late the generator was.
TrialOutcome JudgeTrial(const LoadResult& result, const std::vector<Threshold>& conditions, std::string* why);

}  // namespace curtail::tool
