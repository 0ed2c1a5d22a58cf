// SPDX-License-Identifier: Apache-2.0
//
// report_command.h - `curtail report`: the JSON of a load test once more, as text or files; that of several generators as one.
#pragma once

#include <string>
#include <vector>

#include "curtail/term/console.h"
#include "tools/curtail/load/load_flags.h"

namespace curtail::tool {

struct ReportFlags : ResultFlags {
  std::vector<std::string> files;  // written by curtail load --json: one, or those of all shares of a test
  std::string command;             // the command line, for what is written of several
};

// Writes the files that the flags name, prints the summary where they name none or shares are joined, and judges what it joins
// or --fail-if asks for. Returns the exit code: kBadConfig for a file that is not a report or shares of different tests,
// kVoid where a share is missing or void.
int RunReport(const ReportFlags& flags, Console& console);

}  // namespace curtail::tool
