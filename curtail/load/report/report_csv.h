// SPDX-License-Identifier: Apache-2.0
//
// report_csv.h - the course of a load test as comma-separated values, for spreadsheets and plots.
#pragma once

#include <string>

#include "curtail/load/report/result.h"

namespace curtail {

// A line an interval of each run's series, the warm-up included, below a line that names the
// columns. Times and counts are as in LoadInterval; runs count from 1. Pure function.
std::string ReportCsv(const LoadReport& report);

}  // namespace curtail
