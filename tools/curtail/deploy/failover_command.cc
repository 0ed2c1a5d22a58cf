// SPDX-License-Identifier: Apache-2.0
//
// `curtail failover`: the standby of a store becomes its primary while the application serves.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/process/process.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

struct FailoverFlags {
  std::string target;  // APP/STORE
};

int Refuse(Console& console, const std::string& problem, const std::string& hint) {
  console.Error(problem, hint);
  return kBadConfig;
}

// Runs the command that the topology has for the store in this process's place. Returns the exit code if that fails.
int RunFailover(const FailoverFlags& flags, Console& console) {
  const size_t slash = flags.target.find('/');
  const std::string application = flags.target.substr(0, slash);
  const std::string store = slash == std::string::npos ? "" : flags.target.substr(slash + 1);
  const absl::StatusOr<UpState> state = ReadUpState(application);
  if (!state.ok())
    return Refuse(console, std::string(Message(state.status())), "curtail ps lists what is up");
  int replicas = 0;
  std::vector<std::string> command;
  std::set<std::string> stores;
  for (const ProcessState& process : state->processes) {
    if (process.failover.empty()) continue;
    stores.insert(process.service);
    if (process.service != store) continue;
    ++replicas;
    command = process.failover;
  }
  if (command.empty()) {
    return Refuse(
        console,
        absl::StrCat(application, " has no store ", store, " that can fail over",
                     stores.empty() ? "" : absl::StrCat("; there are ", absl::StrJoin(stores, ", "))),
        absl::StrCat("curtail up ", application, " --stores postgresql --set postgresql.replicas=2"));
  }
  if (replicas < 2) {
    return Refuse(console, absl::StrCat(flags.target, " has one replica, and no standby"),
                  absl::StrCat("start the application with --set ", store, ".replicas=2"));
  }
  // Relative paths of a topology begin where the process is that looks after it.
  if (chdir(absl::StrCat("/proc/", state->pid, "/cwd").c_str()) != 0)
    return Refuse(console, absl::StrCat(application, " has just ended"),
                  absl::StrCat("start it again: curtail up ", application));
  console.Error(std::string(Message(deploy::BecomeProgram(std::move(command)))), "");
  return kFailed;
}

}  // namespace

Command AddFailover(CLI::App& app) {
  const auto f = std::make_shared<FailoverFlags>();
  CLI::App* command =
      app.add_subcommand("failover", "Make the standby of a store its primary while the application serves");
  command->add_option("APP/STORE", f->target, "A store of two replicas, of an application that is up")
      ->required();
  command->footer(
      "The primary is ended, or killed if it does not answer. The standby becomes the primary, and the "
      "former\n"
      "primary its standby. Nothing that was acknowledged is lost. If the standby may lack some of it, "
      "nothing\n"
      "changes, and the command exits with 104.\n"
      "Examples:\n"
      "  curtail up bank --stores postgresql --set postgresql.replicas=2 --detach\n"
      "  curtail failover bank/postgresql");
  return {command, [f](const Invocation& given) { return RunFailover(*f, given.console); }};
}

}  // namespace curtail::tool
