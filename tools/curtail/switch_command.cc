// SPDX-License-Identifier: Apache-2.0
#include "switch_command.h"

#include "curtail/base/strings.h"
#include "curtail/exec/config.h"
#include "curtail/rpc/channel.h"
#include "exit_code.h"
#include "google/protobuf/wrappers.pb.h"

namespace curtail::tool {
namespace {

constexpr Nanos kTimeout = std::chrono::seconds(5);

// The messages of curtail.admin.v1.Admin hold one string, in field 1: on the wire they are StringValues.
absl::Status CallAdmin(const std::string& target, std::string_view path, const std::string& in,
                       std::string* out) {
  Client client;
  Channel channel(&client, target);
  Context ctx(kTimeout);
  google::protobuf::StringValue request, reply;
  request.set_value(in);
  absl::Status status = channel.Call(ctx, path, request, &reply);
  *out = reply.value();
  return status;
}

}  // namespace

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
  const absl::Status status =
      only_tell ? CallAdmin(flags.target, "/curtail.admin.v1.Admin/GetConfig", "", &answer)
                : CallAdmin(flags.target, "/curtail.admin.v1.Admin/Switch", flags.config, &answer);
  if (absl::IsInvalidArgument(status)) {
    console.Error(std::string(Message(status)), "");
    return kBadConfig;
  }
  if (!status.ok()) {
    console.Error(std::string(Message(status)), "is that the address given to the server as --admin?");
    return kFailed;
  }
  console.Print(only_tell ? answer + "\n" : Join(answer, " -> ", flags.config, "\n"));
  return kOk;
}

}  // namespace curtail::tool
