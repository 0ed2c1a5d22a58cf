// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/service.h"

#include <climits>

#include "curtail/base/strings.h"
#include "curtail/rpc/serialize.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {

absl::Status ParseRequest(std::string_view bytes, google::protobuf::MessageLite* request) {
  if (Parse(bytes, request)) return absl::OkStatus();
  return absl::InternalError(Join("request is no valid ", request->GetTypeName()));
}

absl::Status SerializeReply(const google::protobuf::MessageLite& reply, std::string* bytes) {
  if (Serialize(reply, bytes)) return absl::OkStatus();
  return absl::InternalError("cannot serialize the reply (larger than 2 GiB, or a required field is unset)");
}

MethodHandler StreamMethod(std::string name, StreamHandler run) {
  MethodHandler handler;
  handler.name = std::move(name);
  handler.kind = MethodHandler::Kind::kStream;
  handler.stream = std::move(run);
  return handler;
}

absl::Status ReadOneRequest(MessageStream& stream, google::protobuf::MessageLite* request) {
  std::string bytes, more;
  const bool one = stream.Read(&bytes);
  return CheckOneRequest(one && !stream.Read(&more), bytes, request);
}

absl::Status CheckOneRequest(bool one, std::string_view bytes, google::protobuf::MessageLite* request) {
  if (one) return ParseRequest(bytes, request);
  return absl::UnimplementedError("the request of this call is exactly one message");
}

void NameDeadline(const Context& ctx, absl::Status* error) {
  if (!absl::IsCancelled(*error) || ctx.cancelled() || !ctx.deadline().Expired()) return;
  *error = absl::DeadlineExceededError(Join("deadline exceeded: ", Message(*error)));
}

}  // namespace curtail::internal
