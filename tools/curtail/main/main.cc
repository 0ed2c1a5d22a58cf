// SPDX-License-Identifier: Apache-2.0
//
// curtail: the command line. A command is a file in the folder of its kind, and a word in this table.
#include <atomic>

#include "curtail/term/console.h"
#include "curtail/term/interrupt.h"
#include "tools/curtail/main/command_line.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {

// Each stands in the file of its command.
AddCommand AddUp, AddNew, AddDown, AddRestart, AddScale, AddFailover, AddRelay, AddPs, AddLogs, AddLoad,
    AddDemo, AddTrain, AddVerify, AddCompare, AddProvision, AddSwitch, AddLogLevel, AddStatus, AddObserve,
    AddTop, AddDashboard, AddTraces, AddRender, AddReport, AddCompareResults;

namespace {

constexpr AddCommand* kCommands[] = {AddUp,        AddNew,      AddDown,   AddRestart, AddScale,
                                     AddFailover,  AddRelay,    AddPs,     AddLogs,    AddLoad,
                                     AddDemo,      AddTrain,    AddVerify, AddCompare, AddProvision,
                                     AddSwitch,    AddLogLevel, AddStatus, AddObserve, AddTop,
                                     AddDashboard, AddTraces,   AddRender, AddReport,  AddCompareResults};

}  // namespace
}  // namespace curtail::tool

int main(int argc, char** argv) {
  const std::atomic<bool>& stop = curtail::CatchInterrupts();
  curtail::Console console;
  return curtail::tool::RunCommandLine(curtail::tool::kCommands, argc, argv, console, stop);
}
