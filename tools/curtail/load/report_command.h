// SPDX-License-Identifier: Apache-2.0
//
// report_command.h - `curtail report`: the JSON of a load test once more, as text, HTML or percentile spectrum.
#pragma once

#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct ReportFlags {
  std::string file;  // written by curtail load --json
  std::string html;  // where to write it; empty: not
  std::string hgrm;
};

// Prints the summary, or with --html or --hgrm writes those instead; returns the exit code, kBadConfig for a file that
// is no report.
int RunReport(const ReportFlags& flags, Console& console);

}  // namespace curtail::tool
