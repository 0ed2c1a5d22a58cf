// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/status_command.h"

#include "curtail/rpc/admin/admin.pb.h"
#include "tools/curtail/cli/exit_code.h"
#include "tools/curtail/deploy/admin_client.h"
#include "tools/curtail/deploy/status_text.h"

namespace curtail::tool {

int RunStatus(const StatusFlags& flags, Console& console) {
  const absl::StatusOr<admin::v1::GetStatusReply> status = AdminClient(flags.target).GetStatus();
  if (!status.ok()) return AdminFailure(status.status(), console);
  console.Print(flags.json ? StatusJson(*status) : StatusText(*status));
  return kOk;
}

}  // namespace curtail::tool
