// SPDX-License-Identifier: Apache-2.0
//
// traces_command.h - `curtail traces`: where the time of requests goes, by the spans of all services.
#pragma once

#include <atomic>
#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct TracesFlags {
  std::string source;  // an application that is up, or a file of spans
  double seconds = 5;
  std::string slow;  // a duration; empty: the slowest tenth
  std::string json;  // "-": the standard output; else a path; empty: none
};

// Collects spans for some seconds, or until `stop`, joins them, and prints what curtail/observe/trace_analysis.h finds.
// Returns the exit code.
int RunTraces(const TracesFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
