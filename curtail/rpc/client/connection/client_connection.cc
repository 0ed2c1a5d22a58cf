// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/connection/client_connection.h"

#include <algorithm>
#include <utility>

#include "curtail/base/string_bytes.h"
#include "curtail/base/strings.h"

namespace curtail::internal {

ClientConnection::ClientConnection(const wire::SessionOptions& options, UniqueFd fd,
                                   std::shared_ptr<Poller> poller, bool connected,
                                   std::unique_ptr<TlsStream> tls, TimePoint give_up,
                                   std::weak_ptr<Slot> slot, std::string target,
                                   std::shared_ptr<SharedBackend> shared, Keepalive keepalive,
                                   Observation observation, TargetConnections* counts)
    : Connection(wire::Role::kClient, options, std::move(fd), std::move(poller), connected, std::move(tls)),
      give_up_(give_up),
      slot_(std::move(slot)),
      target_(std::move(target)),
      keepalive_(keepalive),
      shared_(std::move(shared)),
      counts_outcomes_(observation.outcomes),
      row_(observation.row),
      error_penalty_(observation.error_penalty),
      health_(observation.health_service && shared_ != nullptr
                  ? std::make_unique<HealthWatch>(*shared_, *observation.health_service)
                  : nullptr),
      counts_(*counts),
      standing_(standing()) {
  if (standing()) CountStanding();
}

ClientConnection::~ClientConnection() { CountEnd(); }

void ClientConnection::CountStanding() {
  counted_ = Counted::kStanding;
  counts_.stood.fetch_add(1, std::memory_order_relaxed);
}

void ClientConnection::CountEnd() {
  const Counted before = std::exchange(counted_, Counted::kOver);
  if (before == Counted::kAttempt) counts_.failures.fetch_add(1, std::memory_order_relaxed);
  if (before == Counted::kStanding) counts_.closed.fetch_add(1, std::memory_order_relaxed);
}

void ClientConnection::WatchHealth(TimePoint now) {
  if (health_ != nullptr && usable() && health_->TakeStart(now)) Post(&health_->start);
}

void ClientConnection::EndWatch() {
  if (health_ == nullptr || !health_->open_) return;
  health_->cancelling_ = true;
  session().Cancel(health_->id_);  // H7 of health_watch.cc
}

void ClientConnection::Count(ClientCall& call) {
  if (call.watch) [[unlikely]] {
    health_->connection_lives = usable_.load(std::memory_order_relaxed) && !closed();
    return;
  }
  shared_->outstanding.fetch_sub(1, std::memory_order_relaxed);
  if (error_penalty_) [[unlikely]] {
    if (const auto report = call.metadata.trailing.Find(kLoadReportKey))
      shared_->load.Report(*report, *error_penalty_, Now());
  }
  if (!counts_outcomes_ || call.unprocessed) [[likely]]
    return;
  OutlierState& state = shared_->outliers;
  if (call.status.ok()) {
    state.succeeded.fetch_add(1, std::memory_order_relaxed);
    if (state.row.load(std::memory_order_relaxed) != 0) state.row.store(0, std::memory_order_relaxed);
  } else if (!call.cancelling_ || Now() >= call.due) {  // a caller that goes says nothing of the server
    state.failed.fetch_add(1, std::memory_order_relaxed);
    const uint32_t row = state.row.fetch_add(1, std::memory_order_relaxed) + 1;
    if (row_ > 0 && row % row_ == 0) shared_->FailedInARow();
  }
}

absl::Status TooLong(size_t bytes, size_t limit) {
  return absl::ResourceExhaustedError(Join("the request has ", bytes, " bytes; this call may send ", limit));
}

void ClientCall::Reset() {
  ResetOutcome();
  head.metadata.Clear();
  head.trace_parent.set = false;
  EmptyForReuse(message);
}

void ClientConnection::HandleOp(Op* op) {
  auto* client_op = static_cast<ClientOp*>(op);
  ClientCall& call = *client_op->call;
  if (client_op->kind == ClientOp::Kind::kStart) return Start(call);
  if (client_op->kind == ClientOp::Kind::kTurn) return call.stream->OnTurn(session(), call.id_, true);
  call.cancelling_ = true;
  if (call.open_) {
    session().Cancel(call.id_);  // ends in OnCallEnd
  } else if (credits_ != nullptr && credits_->Remove(&call)) {
    call.status = absl::CancelledError("cancelled while it waited for a credit");
    Finish(call);
  }
  call.CancelHandled();
}

void ClientConnection::Start(ClientCall& call) {
  if (call.watch) [[unlikely]]
    health_->Prepare();
  if (closed() || !usable_.load(std::memory_order_relaxed)) {
    call.status =
        why_closed_.ok() ? absl::UnavailableError(Join(target_, ": server is going away")) : why_closed_;
    call.unprocessed = true;
    return Finish(call);
  }
  if (credits_ != nullptr && call.stream == nullptr && !call.watch) [[unlikely]]
    return SendOrWait(call);
  Send(call, call.head);
}

void ClientConnection::Send(ClientCall& call, const wire::RequestHead& head) {
  absl::StatusOr<wire::StreamId> id = call.stream != nullptr && !call.whole_request
                                          ? session().StartCall(head, &call)
                                          : session().StartUnaryCall(head, std::move(call.message), &call);
  if (!id.ok()) {
    call.status = id.status();
    // The session takes no more streams (ids used up): let the next call connect afresh.
    if (absl::IsUnavailable(call.status)) {
      usable_.store(false, std::memory_order_release);
      call.unprocessed = true;
    }
    if (call.has_credit_) [[unlikely]]
      credits_->Unsent();
    return Finish(call);
  }
  call.id_ = *id;
  call.open_ = true;
  if (call.stream == nullptr) return;
  if (standing()) return call.stream->OnStanding();
  impatient_.push_back(&call);
}

void ClientConnection::OnConnected() {
  standing_.store(true, std::memory_order_release);
  CountStanding();
  for (ClientCall* call : std::exchange(impatient_, {})) call->stream->OnStanding();
}

void ClientConnection::OnResponseHead(wire::StreamId, void* tag, wire::Metadata&& metadata) {
  auto& call = *static_cast<ClientCall*>(tag);
  call.committed = true;
  if (!metadata.empty()) std::swap(call.metadata.initial, metadata);
  if (call.stream != nullptr) call.stream->OnHead();
}

void ClientConnection::OnMessage(wire::StreamId id, void* tag, std::string&& message) {
  auto& call = *static_cast<ClientCall*>(tag);
  if (call.stream != nullptr) return call.stream->OnMessage(std::move(message), session(), id);
  if (call.replied_) {
    call.reply.clear();
    call.status = absl::UnimplementedError("more than one message in answer to a unary call");
    return session().Cancel(id);
  }
  call.replied_ = true;
  call.reply.swap(message);  // the session uses the other's memory for a later one
}

void ClientConnection::OnWritable(wire::StreamId id, void* tag) {
  const auto& call = *static_cast<ClientCall*>(tag);
  if (call.stream != nullptr) call.stream->OnTurn(session(), id, false);
}

void ClientConnection::OnCallUnprocessed(wire::StreamId, void* tag, std::string&& message) {
  auto& call = *static_cast<ClientCall*>(tag);
  call.unprocessed = true;
  if (call.message.empty()) call.message = std::move(message);
}

void ClientConnection::NoteGreeted() {
  greeted_.store(true, std::memory_order_release);
  counts_.answered.store(true, std::memory_order_relaxed);
  if (shared_ != nullptr) shared_->down_until.store(0, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline void ClientConnection::End(ClientCall& call) {
  call.open_ = false;
  if (!closed() && !call.cancelling_) {
    call.arrived = arrived();
    if (!greeted_.load(std::memory_order_relaxed)) [[unlikely]]
      NoteGreeted();
  }
  if (call.has_credit_) [[unlikely]] {
    credits_->AnswerCame(call.status.ok(), call.metadata.trailing);
    Finish(call);
    return SendWaiting();
  }
  Finish(call);
}

void ClientConnection::OnReply(wire::StreamId id, void* tag, std::string_view message) {
  auto& call = *static_cast<ClientCall*>(tag);
  if (call.stream != nullptr) [[unlikely]]
    return Connection::OnReply(id, tag, message);
  call.committed = call.replied_ = true;
  AssignBytes(call.reply, message);
  End(call);
}

void ClientConnection::OnCallEnd(wire::StreamId, void* tag, absl::Status&& status,
                                 wire::Metadata&& trailing) {
  auto& call = *static_cast<ClientCall*>(tag);
  if (!impatient_.empty()) std::erase(impatient_, &call);
  if (!trailing.empty()) std::swap(call.metadata.trailing, trailing);
  if (call.status.ok()) {
    // A transport that fails does not say which server it led to.
    call.status = closed() ? absl::Status(status.code(), Join(target_, ": ", Message(status), goaway_why_))
                           : std::move(status);
    if (call.status.ok() && !call.replied_ && call.stream == nullptr)
      call.status = absl::UnimplementedError("no message in answer to a unary call");
  }
  if (!call.status.ok()) call.reply.clear();
  End(call);
}

void ClientConnection::OnGoaway(wire::StreamId, std::string_view why) {
  if (!why.empty()) goaway_why_ = Join("; the server said: ", why);
  usable_.store(false, std::memory_order_release);
  EndWatch();
  if (credits_ != nullptr) [[unlikely]]
    EndWaiting(absl::UnavailableError(Join(target_, ": server is going away")));
  if (shared_ != nullptr) shared_->Lost();
}

void ClientConnection::Look() {
  if (!connect_deadline().infinite()) return Kick(kGiveUp, nullptr);
  Kick(kRead, nullptr);  // the answer may be there
  Kick(kClock, nullptr);
}

void ClientConnection::HandleClock(uint32_t) {
  const TimePoint now = Now();
  if (look_at_.load(std::memory_order_relaxed) > now.time_since_epoch().count()) return;
  if (credits_ != nullptr) [[unlikely]]
    RefuseOverdue(now);
  if (keepalive_.time == Nanos::zero()) return LookNext(TimePoint::max());
  const bool heard = std::exchange(heard_, session().inputs()) != session().inputs();
  if (session().open_streams() == 0) {  // the next call begins anew
    answer_by_ = TimePoint();
    return LookNext(TimePoint::max());
  }
  if (heard) {
    answer_by_ = TimePoint();
    return LookNext(now + keepalive_.time);
  }
  if (answer_by_ == TimePoint()) {
    answer_by_ = now + keepalive_.timeout;
    session().SendPing(0);
  }
  if (now < answer_by_) return LookNext(std::min(answer_by_, now + keepalive_.time));
  LookNext(TimePoint::max());
  Close(absl::UnavailableError(
      Join("keepalive: the server is silent, and has not answered a PING within ",
           std::chrono::duration_cast<std::chrono::milliseconds>(keepalive_.timeout).count(), " ms")));
}

// The channel wants it no more: it closes after its last call.
void ClientConnection::HandleGoodbye(uint32_t) {
  usable_.store(false, std::memory_order_release);
  EndWatch();
  if (credits_ != nullptr) [[unlikely]]
    EndWaiting(absl::UnavailableError(Join(target_, ": connection closed on this side")));
  if (!standing() && session().open_streams() == 0) {
    return Close(absl::UnavailableError("connection closed on this side"));
  }
  session().SendGoaway();
}

void ClientConnection::OnClosed(const absl::Status& why, bool connected) {
  why_closed_ = absl::UnavailableError(Join(target_, ": ", Message(why), goaway_why_));
  usable_.store(false, std::memory_order_release);
  CountEnd();
  if (credits_ != nullptr) [[unlikely]]
    EndWaiting(why_closed_);
  const std::shared_ptr<Slot> slot = slot_.lock();
  if (connected && greeted()) {
    if (shared_ != nullptr) shared_->Lost();
    return;
  }
  if (slot == nullptr) return;
  MutexLock lock(slot->mu);
  slot->Failed(why_closed_, shared_.get()).IgnoreError();
}

}  // namespace curtail::internal
