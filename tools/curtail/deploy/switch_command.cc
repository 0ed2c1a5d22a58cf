// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/switch_command.h"

#include <vector>

#include "curtail/base/strings.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/exec/config.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/admin_failure.h"
#include "tools/curtail/deploy/target.h"

namespace curtail::tool {

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
  }
  return code;
}

}  // namespace curtail::tool
