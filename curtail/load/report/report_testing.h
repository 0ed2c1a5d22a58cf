// SPDX-License-Identifier: Apache-2.0
//
// report_testing.h - made-up load results for tests of what is written about them.
#pragma once

#include <string>

#include "curtail/load/report/report.h"

namespace curtail {

// Poisson arrivals at 100 a second for 10 s after 2 s of warm-up.
LoadPlan SamplePlan();

// A run of this plan with log-normal latencies about 2 ms times `slowdown`, drawn from `seed`; every 100th request is
// aborted with a text that is no UTF-8, the server stalls for a second and switches its config after it.
LoadResult SampleRun(uint64_t seed = 9, double slowdown = 1);

// `runs` such runs of seeds from `seed` on.
LoadReport SampleReport(int runs, uint64_t seed = 9, double slowdown = 1);

// A fixed machine, so that texts do not depend on where the test runs.
// A run of journeys, "log-in" and "pay".
LoadReport SampleJourneys();
// A run whose replies were checked twice each; 3 of 99 failed the second check.
LoadReport SampleChecked();
// A run of two methods, "Balance" and "Pay", with a threshold that holds and one that does not.
LoadReport SampleMix();
ReportOrigin SampleOrigin();
// `runs` runs of share `share` of `shares`.
LoadReport SampleShare(int share, int shares, int runs = 1);

}  // namespace curtail
