// SPDX-License-Identifier: Apache-2.0
//
// curtail: the command line. Each sub-command is a file of its own; this one only wires them.
#include <CLI/CLI.hpp>

#include "console.h"
#include "demo_command.h"
#include "exit_code.h"
#include "interrupt.h"
#include "load_command.h"
#include "status_command.h"
#include "switch_command.h"

namespace {

using namespace curtail::tool;

constexpr char kExamples[] = R"(Examples:
  curtail demo                     # about 95 s: which threading model is best at which load?
  curtail switch 127.0.0.1:9090 SDB1-16                          # at once, while it serves
  curtail status 127.0.0.1:9090                                  # pools, queue, threads
  curtail load 127.0.0.1:7000 --rps 500 --workload hdsearch      # about 12 s

Exit codes: 0 ok, 1 failed, 99 a threshold does not hold, 104 bad configuration, 105 interrupted.)";

}  // namespace

int main(int argc, char** argv) {
  const std::atomic<bool>& stop = CatchInterrupts();
  Console console;
  CLI::App app("curtail: microservices that choose their own threading, and the tools to measure them.",
               "curtail");
  app.footer(kExamples);
  app.require_subcommand(1);
  app.fallthrough();
  bool quiet = false;
  app.add_flag("--quiet", quiet, "Results only, no progress");

  LoadFlags load_flags;
  CLI::App* load = AddLoadCommand(app, &load_flags);
  DemoFlags demo_flags;
  CLI::App* demo = AddDemoCommand(app, &demo_flags);
  SwitchFlags switch_flags;
  CLI::App* switch_to = AddSwitchCommand(app, &switch_flags);
  StatusFlags status_flags;
  CLI::App* status = AddStatusCommand(app, &status_flags);
  CLI::App* version = app.add_subcommand("version", "Print the version");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    console.Error(error.what(), "see curtail --help, or curtail COMMAND --help");
    return kBadConfig;
  }
  console.set_quiet(quiet);
  if (*version) console.Print("curtail " CURTAIL_VERSION "\n");
  if (*switch_to) return RunSwitch(switch_flags, console);
  if (*status) return RunStatus(status_flags, console);
  if (*load) return RunLoad(load_flags, console, stop);
  if (*demo) return RunDemo(demo_flags, console, stop);
  return kOk;
}
