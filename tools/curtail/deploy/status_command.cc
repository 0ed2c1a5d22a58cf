// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/status_command.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/rpc/admin/admin_json.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/admin_failure.h"
#include "tools/curtail/deploy/status_text.h"
#include "tools/curtail/deploy/target.h"

namespace curtail::tool {

int RunStatus(const StatusFlags& flags, Console& console) {
  const absl::StatusOr<std::vector<AdminTarget>> admins = ToAdmins(flags.target);
  if (!admins.ok()) return AdminFailure(admins.status(), "", console);
  std::vector<std::string> texts;
  for (const AdminTarget& admin : *admins) {
    const absl::StatusOr<admin::v1::GetStatusReply> status = deploy::AdminClient(admin.address).GetStatus();
    if (!status.ok()) return AdminFailure(status.status(), admin.name, console);
    const bool named = admins->size() > 1 && !flags.json;
    texts.push_back(absl::StrCat(named ? admin.name + ": " : "",
                                 flags.json ? internal::StatusJson(*status) : StatusText(*status)));
  }
  if (flags.json && texts.size() > 1) {
    console.Print(absl::StrCat("[", absl::StrJoin(texts, ","), "]\n"));
  } else {
    console.Print(absl::StrJoin(texts, "\n"));
  }
  return kOk;
}

}  // namespace curtail::tool
