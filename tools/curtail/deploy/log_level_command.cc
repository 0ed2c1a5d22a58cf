// SPDX-License-Identifier: Apache-2.0
//
// `curtail loglevel`: changes which lines running servers write to their logs.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/admin_failure.h"
#include "tools/curtail/deploy/target.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

struct LogLevelFlags {
  std::string target;  // the admin address, or what target.h understands
  std::string level;   // empty: only print the present one
};

// Prints the level before and after, of each process that the target names; returns the exit code, of several the first
// that is not 0.
int RunLogLevel(const LogLevelFlags& flags, Console& console) {
  if (!flags.level.empty() && !ParseSeverity(flags.level)) {
    console.Error(Join("\"", flags.level, "\" is not a log level"), "write debug, info, warning or error");
    return kBadConfig;
  }
  const absl::StatusOr<std::vector<AdminTarget>> targets = ToAdmins(flags.target);
  if (!targets.ok()) return AdminFailure(targets.status(), "", console);
  int code = kOk;
  for (const AdminTarget& target : *targets) {
    const absl::StatusOr<std::string> before = deploy::AdminClient(target.address).SetLogLevel(flags.level);
    if (!before.ok()) {
      const int failed = AdminFailure(before.status(), target.name, console);
      code = code == kOk ? failed : code;
      continue;
    }
    const std::string name = targets->size() > 1 ? Join(target.name, ": ") : "";
    const std::string after =
        flags.level.empty() ? "" : Join(" -> ", SeverityName(*ParseSeverity(flags.level)));
    console.Print(Join(name, *before, after, "\n"));
  }
  return code;
}

}  // namespace

Command AddLogLevel(CLI::App& app) {
  const auto f = std::make_shared<LogLevelFlags>();
  CLI::App* command = app.add_subcommand("loglevel", "Change which lines a running server writes to its log");
  command->add_option("TARGET", f->target, kAdminTargetHelp)->required();
  command->add_option(
      "LEVEL", f->level,
      "The least severe lines: debug, info, warning or error; left out: print the present one");
  command->footer(
      "It holds until the process ends; CURTAIL_LOG_LEVEL is the level at the start.\n"
      "Examples:\n"
      "  curtail loglevel shop/cart debug           # all instances; shop/cart.0 is one\n"
      "  CURTAIL_ADMIN_TOKEN=... curtail loglevel 10.0.0.7:9090 warning");
  return {command, [f](const Invocation& given) { return RunLogLevel(*f, given.console); }};
}

}  // namespace curtail::tool
