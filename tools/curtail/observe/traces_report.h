// SPDX-License-Identifier: Apache-2.0
//
// traces_report.h - where the time of requests goes, as text and as JSON. Pure functions; any thread.
#pragma once

#include <string>

#include "curtail/observe/trace/trace_analysis.h"

namespace curtail::tool {

struct TracesReport {
  std::string source;  // the application, or the file
  int processes = 0;   // that were asked; 0: a file
  double seconds = 0;
  const observe::TraceRecords* records = nullptr;
  observe::TraceAnalysis analysis;
};

std::string TracesText(const TracesReport& report);
std::string TracesJson(const TracesReport& report);

}  // namespace curtail::tool
