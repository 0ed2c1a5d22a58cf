// SPDX-License-Identifier: Apache-2.0
//
// command_line.h - what the user asked for: a command and its flags. All flags are declared in command_line.cc, the
// only file that knows how they are parsed.
#pragma once

#include <optional>

#include "compare_command.h"
#include "compare_results_command.h"
#include "console.h"
#include "demo_command.h"
#include "down_command.h"
#include "load_flags.h"
#include "logs_command.h"
#include "ps_command.h"
#include "report_command.h"
#include "status_command.h"
#include "switch_command.h"
#include "train_command.h"
#include "up_command.h"
#include "verify_command.h"

namespace curtail::tool {

enum class Command {
  kVersion,
  kUp,
  kDown,
  kPs,
  kLogs,
  kLoad,
  kDemo,
  kTrain,
  kVerify,
  kCompare,
  kSwitch,
  kStatus,
  kReport,
  kCompareResults
};

struct CommandLine {
  Command command = Command::kVersion;
  UpFlags up;
  DownFlags down;
  PsFlags ps;
  LogsFlags logs;
  LoadFlags load;
  DemoFlags demo;
  TrainFlags train;
  VerifyFlags verify;
  CompareFlags compare;
  SwitchFlags switch_to;
  StatusFlags status;
  ReportFlags report;
  CompareResultsFlags compare_results;
};

// Reads the command line. When there is nothing left to do, as after --help or an error, which are printed, returns
// the exit code instead.
std::optional<int> ParseCommandLine(int argc, char** argv, Console& console, CommandLine* line);

}  // namespace curtail::tool
