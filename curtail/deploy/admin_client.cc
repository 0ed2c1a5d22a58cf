// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/admin_client.h"

#include <cstdlib>

#include "curtail/base/strings.h"
#include "curtail/rpc/admin/admin.curtail.h"

namespace curtail::deploy {
namespace {

using admin::v1::Admin;

// Every server of this version sets these fields: without them the bytes were another message.
bool IsComplete(const admin::v1::GetConfigReply& reply) { return !reply.config().empty(); }
bool IsComplete(const admin::v1::SwitchReply& reply) { return !reply.previous().empty(); }
bool IsComplete(const admin::v1::SetLogLevelReply& reply) { return !reply.previous().empty(); }
bool IsComplete(const admin::v1::GetStatusReply& reply) { return !reply.config().empty(); }
bool IsComplete(const admin::v1::GetDecisionsReply& reply) { return reply.now_ns() != 0; }

template <class Request, class Reply>
absl::StatusOr<Reply> Ask(Channel& channel, const Method<Request, Reply>& method, const Request& request,
                          Nanos timeout) {
  Context ctx(timeout);
  if (const char* token = std::getenv("CURTAIL_ADMIN_TOKEN"); token != nullptr && *token != '\0') {
    ctx.AddMetadata("authorization", Join("Bearer ", token));
  }
  Reply reply;
  absl::Status status = channel.Call(ctx, method.path, request, &reply);
  if (status.ok() && IsComplete(reply)) return reply;
  if (status.ok()) status = absl::InternalError(Join("reply is not a whole ", reply.GetTypeName()));
  if (!absl::IsInternal(status)) return status;
  return absl::InternalError(
      Join(channel.target(), ": ", Message(status), "; is the server of another version?"));
}

}  // namespace

absl::StatusOr<std::string> AdminClient::GetConfig(Nanos timeout) {
  const auto reply = Ask(channel_, Admin::kGetConfig, {}, timeout);
  if (!reply.ok()) return reply.status();
  return reply->config();
}

absl::StatusOr<std::string> AdminClient::SetLogLevel(const std::string& level) {
  admin::v1::SetLogLevelRequest request;
  request.set_level(level);
  const auto reply = Ask(channel_, Admin::kSetLogLevel, request, kTimeout);
  if (!reply.ok()) return reply.status();
  return reply->previous();
}

absl::StatusOr<std::string> AdminClient::Switch(const std::string& config) {
  admin::v1::SwitchRequest request;
  request.set_config(config);
  const auto reply = Ask(channel_, Admin::kSwitch, request, kTimeout);
  if (!reply.ok()) return reply.status();
  return reply->previous();
}

absl::StatusOr<admin::v1::GetStatusReply> AdminClient::GetStatus() {
  return Ask(channel_, Admin::kGetStatus, {}, kTimeout);
}

absl::StatusOr<admin::v1::GetDecisionsReply> AdminClient::GetDecisions() {
  return Ask(channel_, Admin::kGetDecisions, {}, kTimeout);
}

}  // namespace curtail::deploy
