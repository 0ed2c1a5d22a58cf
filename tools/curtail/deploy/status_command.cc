// SPDX-License-Identifier: Apache-2.0
//
// `curtail status`: what a running server does.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/rpc/admin/admin_json.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/admin_failure.h"
#include "tools/curtail/deploy/status_text.h"
#include "tools/curtail/deploy/target.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

struct StatusFlags {
  std::string target;  // the admin address, or what target.h understands
  bool json = false;
};

// Prints config, pools, queue and threads of each process that the target names; returns the exit code.
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

}  // namespace

Command AddStatus(CLI::App& app) {
  const auto f = std::make_shared<StatusFlags>();
  CLI::App* command = app.add_subcommand("status", "What a running server does: pools, queue, threads");
  command->add_option("TARGET", f->target, kAdminTargetHelp)->required();
  command->add_flag("--json", f->json, "As JSON");
  command->footer("Examples:\n  curtail status hdsearch\n  curtail status 127.0.0.1:9090 --json");
  return {command, [f](const Invocation& given) { return RunStatus(*f, given.console); }};
}

}  // namespace curtail::tool
