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
      clock_(parts.clock),
      peer_(std::move(peer)),
      flow_(parts.next_flow.fetch_add(1, std::memory_order_relaxed)),
      charge_(parts.budget, parts.session.max_message_bytes) {
  parts_.budget.AddConnections(1);
  if (parts.credits != nullptr) account_.emplace(parts.credits.get());
}

ServerConnection::~ServerConnection() {
  clock_->Disarm(*this);
  parts_.budget.AddConnections(-1);
  parts_.budget.Add(-static_cast<int64_t>(charged()));  // it was never registered
}

void ServerConnection::HandleOp(Op* op) {
  auto* reply = static_cast<ServerCall::Reply*>(op);
  running_ -= reply->call->FreeRequest();
  reply->call->Send(*reply, session());
}

void ServerConnection::HandleGoodbye(uint32_t bits) {
  for (const auto& call : session().OpenCalls()) {
    if (call.tag != nullptr) static_cast<ServerCall*>(call.tag)->OnGoodbye(session());
  }
  if (bits & kDrain) {
    session().SendGoaway();
  } else {
    session().SendShutdownNotice();
  }
}

void ServerConnection::OnConnected() {
  if (x509_st* const x509 = PeerX509()) identity_ = std::make_unique<PeerIdentity>(x509);
}

void ServerConnection::OnClosed(const absl::Status&, bool) {
  clock_->Disarm(*this);
  EndRest();
  parts_.budget.Add(-static_cast<int64_t>(charged_.exchange(0, std::memory_order_relaxed)));
  parts_.connections.Remove(this);
}

void* ServerConnection::OnRequest(wire::StreamId id, wire::RequestHead&& head) {
  ServedMethod* const method = MethodOf(head.path);
  if (method == nullptr) {
    session().EndCall(id, absl::UnimplementedError(Join("unknown method ", head.path)));
    return nullptr;
  }
  // A read may bring hundreds of calls whose header fields are large, thanks to HPACK.
  if (++begun_ % kLookEvery == 0) Looked();
  NoteActive();
  if (refusing_) [[unlikely]] {
    parts_.limits.Reached(ServerLimit::kBudget, peer_);
    session().EndCall(id, absl::ResourceExhaustedError("the server holds too much for this client"));
    return nullptr;
  }
  ServerCall* const call =
      ServerCall::New(parts_, std::static_pointer_cast<ServerConnection>(shared_from_this()), peer_, *method,
                      id, head, now());
  if (call->due() < wake_at_) [[unlikely]]
    WakeBy(call->due() + kGrace);
  if (method->handler.kind == MethodHandler::Kind::kStream && call->OnBegin()) Queue(*call);
  return call;
}

void ServerConnection::OnMessage(wire::StreamId id, void* tag, std::string&& message) {
  if (tag == nullptr) return;
  auto* call = static_cast<ServerCall*>(tag);
  unended_ -= call->queued_bytes();
  call->OnMessage(std::move(message), session());
  unended_ += call->queued_bytes();
  if (unended_ <= unended_limit_) return;
  parts_.limits.Reached(wire::Limit::kHeld, peer_);
  session().FailCall(id, absl::ResourceExhaustedError("too many bytes of unfinished requests"));
}

void ServerConnection::OnRequestEnd(wire::StreamId, void* tag) {
  if (tag == nullptr) return;
  auto* call = static_cast<ServerCall*>(tag);
  call->ended = true;
  unended_ -= call->queued_bytes();
  running_ += call->queued_bytes();
  if (call->OnRequestEnd(ArrivedAt())) Queue(*call);
}

void ServerConnection::OnWritable(wire::StreamId, void* tag) {
  if (tag != nullptr) static_cast<ServerCall*>(tag)->OnWritable(session());
}

void ServerConnection::Queue(ServerCall& call) {
  if (call.in_line()) return call.AnswerInLine(session());
  if (call.due() <= now()) [[unlikely]] {  // D1 of server_call_refusals.cc
    call.RefuseLate(session());
    return call.Drop();
  }
  if (account_ && !call.TakeCredit(*account_)) [[unlikely]] {
    call.RefuseWithoutCredit(*account_, session());
    return call.Drop();
  }
  const bool has_share = queued_.fetch_add(1, std::memory_order_relaxed) >= parts_.places.share();
  if (!has_share && parts_.places.TryQueue(call.queued_bytes())) {
    call.TakePlace();
    call.set_flow(flow_);
    return ready()->Push(&call);
  }
  Dequeued();
  parts_.limits.Reached(has_share ? ServerLimit::kQueueShare : ServerLimit::kQueue, peer_);
  call.Refuse(absl::ResourceExhaustedError("too many requests are waiting on this server"), session());
  call.Drop();
}

void ServerConnection::OnCallEnd(wire::StreamId, void* tag, absl::Status&& status, Metadata&&) {
  if (tag == nullptr) return;
  auto* call = static_cast<ServerCall*>(tag);
  (call->ended ? running_ : unended_) -= call->queued_bytes();
  if (account_) [[unlikely]]
    call->GiveCreditBack(*account_, status.ok());
  call->OnStreamEnd(status.ok());
}

}  // namespace curtail::internal
