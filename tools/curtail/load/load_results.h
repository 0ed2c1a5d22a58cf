// SPDX-License-Identifier: Apache-2.0
//
// load_results.h - what becomes of the results of a load test: verdicts, files, exit codes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/load/report/report.h"
#include "curtail/term/console.h"
#include "tools/curtail/load/load_flags.h"

namespace curtail::tool {

// Before a run: OK if all files of the flags can be written. Has results for people go to stderr if one of the files is
// stdout. Errors: those of CheckWritable(); INVALID_ARGUMENT if two of them are stdout.
absl::Status CheckOutputs(const ResultFlags& flags, Console& console);
// The same for the results of other commands; an empty path is none.
absl::Status CheckPaths(const std::vector<std::string>& paths, Console& console);

// Prints a line a threshold of the report. kOk where all are met in every run; kThreshold or, where only the generator's lateness
// stands against it, kVoid otherwise.
int CheckThresholds(const LoadReport& report, Console& console);

// Writes one; the paths "-" and /dev/stdout are stdout.
absl::Status WriteResult(const std::string& path, std::string_view content, Console& console);
// Writes the files of the flags, but for --raw; the first error that there is.
absl::Status WriteResults(const ResultFlags& flags, const LoadReport& report, const ReportOrigin& origin,
                          Console& console);

// The machine of a generator, in a few words.
std::string MachineText(const Machine& machine);

// Prints why a result was not written. Returns the exit code.
int FailWriting(Console& console, const absl::Status& status);

}  // namespace curtail::tool
