// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/server_connection.h"

#include <utility>

#include "curtail/base/strings.h"
#include "curtail/rpc/server/server_call.h"

namespace curtail::internal {

ServerConnection::ServerConnection(ServerParts& parts, UniqueFd fd, std::shared_ptr<Poller> poller,
                                   std::unique_ptr<TlsStream> tls, std::string peer)
    : Connection(wire::Role::kServer, parts.session, std::move(fd), std::move(poller), /*connected=*/true,
                 std::move(tls)),
      parts_(parts),
      peer_(std::move(peer)) {}

void ServerConnection::HandleOp(Op* op) {
  auto* reply = static_cast<ServerCall::Reply*>(op);
  reply->call->Send(*reply, session());
}

void ServerConnection::HandleGoodbye(uint32_t bits) {
  if (bits & kDrain) {
    session().SendGoaway();
  } else {
    session().SendShutdownNotice();
  }
}

void ServerConnection::OnClosed(const absl::Status&, bool) { parts_.connections.Remove(this); }

void* ServerConnection::OnRequest(wire::StreamId id, wire::RequestHead&& head) {
  ServedMethod* const method = parts_.methods.Find(head.path);
  if (method == nullptr) {
    session().EndCall(id, absl::UnimplementedError(Join("unknown method ", head.path)));
    return nullptr;
  }
  return ServerCall::New(parts_, shared_from_this(), peer_, *method, id, head, now());
}

void ServerConnection::OnMessage(wire::StreamId, void* tag, std::string&& message) {
  if (tag == nullptr) return;
  auto* call = static_cast<ServerCall*>(tag);
  if (call->OnMessage(std::move(message), ArrivedAt())) Queue(*call);
}

void ServerConnection::OnRequestEnd(wire::StreamId, void* tag) {
  if (tag == nullptr) return;
  auto* call = static_cast<ServerCall*>(tag);
  if (call->OnRequestEnd(ArrivedAt())) Queue(*call);
}

void ServerConnection::Queue(ServerCall& call) {
  if (parts_.admission.TryQueue(call.queued_bytes())) return ready()->Push(&call);
  parts_.limits.Reached(ServerLimit::kQueue, peer_);
  call.Refuse(absl::ResourceExhaustedError("too many requests are waiting on this server"), session());
  call.Drop();
}

void ServerConnection::OnCallEnd(wire::StreamId, void* tag, absl::Status&& status, Metadata&&) {
  if (tag != nullptr) static_cast<ServerCall*>(tag)->OnStreamEnd(status.ok());
}

}  // namespace curtail::internal
