// SPDX-License-Identifier: Apache-2.0
//
// compare_results_command.h - `curtail compare-results`: whether two load tests differ, or only by noise.
#pragma once

#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct CompareResultsFlags {
  std::string a;  // files written by curtail load --json; B is judged against A
  std::string b;
  std::string json;  // where to write the comparison; empty: nowhere
  bool fail_if_worse = false;
};

// Prints a table. Returns the exit code: kOk whether they differ or not, kThreshold with fail_if_worse when something
// is worse and kVoid when all runs of a side are void, kBadConfig for a file that is no report.
int RunCompareResults(const CompareResultsFlags& flags, Console& console);

}  // namespace curtail::tool
