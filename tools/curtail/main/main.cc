// SPDX-License-Identifier: Apache-2.0
//
// curtail: the command line. Each sub-command is a file of its own; this one only wires them.
#include <stdlib.h>

#include "curtail/term/interrupt.h"
#include "tools/curtail/load/load_command.h"
#include "tools/curtail/main/command_line.h"

int main(int argc, char** argv) {
  using namespace curtail;
  using namespace curtail::tool;
  const std::atomic<bool>& stop = CatchInterrupts();
  Console console;
  CommandLine line;
  if (const std::optional<int> done = ParseCommandLine(argc, argv, console, &line)) return *done;
  // The processes that it starts say "ready" to it, in text.
  if (line.command != Command::kDashboard) unsetenv("CURTAIL_LOG_FORMAT");
  switch (line.command) {
    case Command::kUp:
      return RunUp(line.up, console, stop);
    case Command::kDown:
      return RunDown(line.down, console, stop);
    case Command::kNew:
      return RunNew(line.create, console);
    case Command::kRelay:
      return RunRelay(line.relay, console, stop);
    case Command::kScale:
      return RunScale(line.scale, console, stop);
    case Command::kFailover:
      return RunFailover(line.failover, console);
    case Command::kPs:
      return RunPs(line.ps, console);
    case Command::kLogs:
      return RunLogs(line.logs, console, stop);
    case Command::kLoad:
      return RunLoad(line.load, console, stop);
    case Command::kDemo:
      return RunDemo(line.demo, console, stop);
    case Command::kTrain:
      return RunTrain(line.train, console, stop);
    case Command::kVerify:
      return RunVerify(line.verify, console, stop);
    case Command::kCompare:
      return RunCompare(line.compare, console, stop);
    case Command::kProvision:
      return RunProvision(line.provision, console, stop);
    case Command::kSwitch:
      return RunSwitch(line.switch_to, console);
    case Command::kStatus:
      return RunStatus(line.status, console);
    case Command::kObserve:
      return RunObserve(line.observe, console, stop);
    case Command::kTop:
      return RunTop(line.top, console, stop);
    case Command::kDashboard:
      return RunDashboard(line.dashboard, console, stop);
    case Command::kTraces:
      return RunTraces(line.traces, console, stop);
    case Command::kRender:
      return RunRender(line.render, console);
    case Command::kReport:
      return RunReport(line.report, console);
    case Command::kCompareResults:
      return RunCompareResults(line.compare_results, console);
    case Command::kVersion:
      console.Print("curtail " CURTAIL_VERSION "\n");
      return 0;
  }
  return 0;
}
