// SPDX-License-Identifier: Apache-2.0
//
// report_junit.h - the verdicts of a load test as test cases, for continuous integration.
#pragma once

#include <string>

#include "curtail/load/report/result.h"

namespace curtail {

// One test suite in JUnit's XML. Each run is a case, which has an error if the run is void. Each
// threshold is a case a run: failed, or with an error where the generator's lateness decides. Pure
// function.
std::string ReportJunit(const LoadReport& report);

}  // namespace curtail
