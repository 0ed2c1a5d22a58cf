// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/service.h"

#include <climits>

#include "curtail/base/strings.h"
#include "curtail/rpc/call/serialize.h"
#include "curtail/rpc/continuation.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {

namespace {

// `charged`: what the server says to the memory that the request takes.
absl::Status ParseCharged(absl::Status charged, std::string_view bytes,
                          google::protobuf::MessageLite* request) {
  if (!charged.ok()) return charged;
  if (Parse(bytes, request)) return absl::OkStatus();
  return absl::InternalError(Join("request is not a valid ", request->GetTypeName()));
}

}  // namespace

absl::Status ParseRequest(Context& ctx, std::string_view bytes, google::protobuf::MessageLite* request) {
  return ParseCharged(ctx.ChargeParsed(bytes, *request), bytes, request);
}

absl::Status SerializeReply(const google::protobuf::MessageLite& reply, std::string* bytes) {
  if (Serialize(reply, bytes)) return absl::OkStatus();
  return absl::InternalError("cannot serialize the reply (larger than 2 GiB, or a required field is unset)");
}

Handler UnaryHandlerOf(const MessageTypes& types, AnyHandler method) {
  return [&types, method = std::move(method)](Context& ctx, std::string_view bytes,
                                              std::string* out) -> absl::Status {
    const MessageTypes::Lease messages = types.Borrow();
    messages->Saw(bytes.size());
    if (absl::Status parsed = ParseRequest(ctx, bytes, messages->request); !parsed.ok()) return parsed;
    absl::Status status = method(ctx, *messages->request, messages->reply);
    if (status.ok()) status = SerializeReply(*messages->reply, out);
    messages->Saw(out->size());
    return status;
  };
}

MethodHandler StraightLineMethodOf(std::string_view name, bool never_waits, const MessageTypes& types,
                                   AnyHandler method) {
  MethodHandler handler;
  handler.name = name;
  handler.handler = UnaryHandlerOf(types, method);
  handler.never_waits = never_waits;
  handler.typed.accepts = types.accepts;
  handler.typed.run = std::move(method);
  return handler;
}

MethodHandler ContinuationMethodOf(std::string_view name, const MessageTypes& types, AnyContinuation method) {
  MethodHandler handler;
  handler.name = name;
  handler.continuation = [&types, method = std::move(method)](Context& ctx, std::string_view bytes,
                                                              Responder responder) {
    const MessageTypes::Lease messages = types.Borrow();
    messages->Saw(bytes.size());
    if (absl::Status parsed = ParseRequest(ctx, bytes, messages->request); !parsed.ok()) {
      return responder.Finish(std::move(parsed));
    }
    method(ctx, *messages->request, std::move(responder));
  };
  return handler;
}

absl::Status NotImplemented(std::string_view method) {
  return absl::UnimplementedError(Join(method, " is not implemented"));
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
  return CheckOneRequest(stream, one && !stream.Read(&more), bytes, request);
}

absl::Status CheckOneRequest(MessageStream& stream, bool one, std::string_view bytes,
                             google::protobuf::MessageLite* request) {
  if (one) return ParseCharged(stream.ChargeParsed(bytes, *request), bytes, request);
  return absl::UnimplementedError("the request of this call is exactly one message");
}

}  // namespace curtail::internal
