// SPDX-License-Identifier: Apache-2.0
//
// command_line.h - what the user asked for: a command and its flags. All flags are declared in command_line.cc and
// deploy_commands.cc, the only files that know how they are parsed.
#pragma once

#include <optional>

#include "curtail/term/console.h"
#include "tools/curtail/compare/compare_command.h"
#include "tools/curtail/compare/demo_command.h"
#include "tools/curtail/create/new_command.h"
#include "tools/curtail/deploy/down_command.h"
#include "tools/curtail/deploy/failover_command.h"
#include "tools/curtail/deploy/logs_command.h"
#include "tools/curtail/deploy/ps_command.h"
#include "tools/curtail/deploy/relay_command.h"
#include "tools/curtail/deploy/scale_command.h"
#include "tools/curtail/deploy/status_command.h"
#include "tools/curtail/deploy/switch_command.h"
#include "tools/curtail/load/compare_results_command.h"
#include "tools/curtail/load/load_flags.h"
#include "tools/curtail/load/report_command.h"
#include "tools/curtail/observe/dashboard_command.h"
#include "tools/curtail/observe/observe_command.h"
#include "tools/curtail/observe/top_command.h"
#include "tools/curtail/observe/traces_command.h"
#include "tools/curtail/provision/provision_command.h"
#include "tools/curtail/render/render_command.h"
#include "tools/curtail/train/train_command.h"
#include "tools/curtail/train/verify_command.h"
#include "tools/curtail/up/up_command.h"

namespace curtail::tool {

enum class Command {
  kVersion,
  kUp,
  kNew,
  kDown,
  kScale,
  kFailover,
  kRelay,
  kPs,
  kLogs,
  kLoad,
  kDemo,
  kTrain,
  kVerify,
  kCompare,
  kProvision,
  kSwitch,
  kStatus,
  kObserve,
  kTop,
  kDashboard,
  kTraces,
  kRender,
  kReport,
  kCompareResults
};

struct CommandLine {
  Command command = Command::kVersion;
  UpFlags up;
  NewFlags create;
  DownFlags down;
  ScaleFlags scale;
  FailoverFlags failover;
  RelayFlags relay;
  PsFlags ps;
  LogsFlags logs;
  LoadFlags load;
  DemoFlags demo;
  TrainFlags train;
  VerifyFlags verify;
  CompareFlags compare;
  ProvisionFlags provision;
  SwitchFlags switch_to;
  StatusFlags status;
  ObserveFlags observe;
  TopFlags top;
  DashboardFlags dashboard;
  TracesFlags traces;
  RenderFlags render;
  ReportFlags report;
  CompareResultsFlags compare_results;
};

// Reads the command line. When there is nothing left to do, as after --help or an error, which are printed, returns
// the exit code instead.
std::optional<int> ParseCommandLine(int argc, char** argv, Console& console, CommandLine* line);

}  // namespace curtail::tool
