// SPDX-License-Identifier: Apache-2.0
#include "switch_command.h"

#include "admin_client.h"
#include "curtail/base/strings.h"
#include "curtail/exec/config.h"
#include "exit_code.h"

namespace curtail::tool {
CLI::App* AddSwitchCommand(CLI::App& app, SwitchFlags* flags) {
  CLI::App* command = app.add_subcommand("switch", "Put another config in force on a running server");
  command->add_option("target", flags->target, "Its admin address (the server\'s --admin)")->required();
  command->add_option("config", flags->config,
                      "For example SIP1 or SDB1-16; left out: print the one in force");
  command->footer(
      "The server goes on serving: requests under way finish as they began.\n"
      "Example: curtail switch 127.0.0.1:9090 SDB1-16");
  return command;
}

int RunSwitch(const SwitchFlags& flags, Console& console) {
  if (!flags.config.empty()) {
    if (const auto config = Config::Parse(flags.config); !config.ok()) {
      console.Error(std::string(Message(config.status())), "");
      return kBadConfig;
    }
  }
  std::string answer;
  const bool only_tell = flags.config.empty();
  const absl::Status status = only_tell ? CallAdmin(flags.target, "GetConfig", "", &answer)
                                        : CallAdmin(flags.target, "Switch", flags.config, &answer);
  if (!status.ok()) return AdminFailure(status, console);
  console.Print(only_tell ? answer + "\n" : Join(answer, " -> ", flags.config, "\n"));
  return kOk;
}

}  // namespace curtail::tool
