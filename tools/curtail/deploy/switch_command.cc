// SPDX-License-Identifier: Apache-2.0
//
// `curtail switch`: puts another config in force on a running server.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/exec/config.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/admin_failure.h"
#include "tools/curtail/deploy/status_text.h"
#include "tools/curtail/deploy/target.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

struct SwitchFlags {
  std::string target;  // the admin address, or what target.h understands
  std::string config;  // empty: only print the one in force
};

// Prints the config before and after, of each process that the target names; returns the exit code, of several the first
// that is not 0.
int RunSwitch(const SwitchFlags& flags, Console& console) {
  if (!flags.config.empty()) {
    if (const auto config = Config::Parse(flags.config); !config.ok()) {
      console.Error(std::string(Message(config.status())), "");
      return kBadConfig;
    }
  }
  const absl::StatusOr<std::vector<AdminTarget>> targets = ToAdmins(flags.target);
  if (!targets.ok()) return AdminFailure(targets.status(), "", console);
  const bool only_tell = flags.config.empty();
  int code = kOk;
  for (const AdminTarget& target : *targets) {
    deploy::AdminClient admin(target.address);
    const absl::StatusOr<std::string> answer = only_tell ? admin.GetConfig() : admin.Switch(flags.config);
    if (!answer.ok()) {
      const int failed = AdminFailure(answer.status(), target.name, console);
      code = code == kOk ? failed : code;
      continue;
    }
    const std::string name = targets->size() > 1 ? Join(target.name, ": ") : "";
    console.Print(only_tell ? Join(name, *answer, "\n") : Join(name, *answer, " -> ", flags.config, "\n"));
    if (only_tell) continue;
    const absl::StatusOr<admin::v1::GetStatusReply> status = admin.GetStatus();
    if (!status.ok()) continue;
    for (const std::string& note : BlockingNotes(*status, *Config::Parse(flags.config)))
      console.Note(Join(name, note));
  }
  return code;
}

}  // namespace

Command AddSwitch(CLI::App& app) {
  const auto f = std::make_shared<SwitchFlags>();
  CLI::App* command = app.add_subcommand("switch", "Put another config in force on a running server");
  command->add_option("TARGET", f->target, kAdminTargetHelp)->required();
  command->add_option("CONFIG", f->config, "For example SIP1 or SDB1-16; left out: print the one in force");
  command->footer(
      "The server goes on serving: requests in flight finish as they began.\n"
      "Examples:\n"
      "  curtail switch hdsearch SDB1-16            # the service that clients call\n"
      "  curtail switch hdsearch/leaf FIB1          # all leaves; hdsearch/leaf.0 is one\n"
      "  curtail switch 127.0.0.1:9090 SDB1-16");
  return {command, [f](const Invocation& given) { return RunSwitch(*f, given.console); }};
}

}  // namespace curtail::tool
