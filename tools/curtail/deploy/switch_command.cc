// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/switch_command.h"

#include "curtail/base/strings.h"
#include "curtail/exec/config.h"
#include "tools/curtail/cli/exit_code.h"
#include "tools/curtail/deploy/admin_client.h"

namespace curtail::tool {
int RunSwitch(const SwitchFlags& flags, Console& console) {
  if (!flags.config.empty()) {
    if (const auto config = Config::Parse(flags.config); !config.ok()) {
      console.Error(std::string(Message(config.status())), "");
      return kBadConfig;
    }
  }
  AdminClient admin(flags.target);
  const bool only_tell = flags.config.empty();
  const absl::StatusOr<std::string> answer = only_tell ? admin.GetConfig() : admin.Switch(flags.config);
  if (!answer.ok()) return AdminFailure(answer.status(), console);
  console.Print(only_tell ? *answer + "\n" : Join(*answer, " -> ", flags.config, "\n"));
  return kOk;
}

}  // namespace curtail::tool
