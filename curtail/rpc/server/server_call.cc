// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/server_call.h"

#include <sys/resource.h>

#include "curtail/exec/blocking.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/fiber.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/server/health_watch_call.h"
#include "curtail/rpc/server/server_connection.h"
#include "curtail/rpc/server/stream_call.h"
#include "curtail/rpc/server/unary_call.h"

namespace curtail {

using internal::ObservedCall;
using internal::ReplyOutput;
using internal::ServedMethod;
using internal::ServerConnection;
using internal::ServerParts;

namespace {

// Finds out whether a handler sleeps outside of curtail's waits, if it runs long enough to matter.
class SleepCounter {
 public:
  void Begin(const ServedMethod& method) {
    counts_ = method.kind.blocks() || method.took() >= kLong;
    if (!counts_) return;
    waits_ = waits_of_thread;
    sleeps_ = Sleeps();
  }
  // As TaskKind::Ran(): true if the method's handlers now block, and the log is to say so.
  bool End(ServedMethod& method) {
    if (!counts_ || method.took() < kLong) return counts_ && method.kind.Ran(/*asleep=*/false);
    return method.kind.Ran(Sleeps() - sleeps_ > waits_of_thread - waits_);
  }

 private:
  static constexpr Nanos kLong = std::chrono::microseconds(200);

  static uint64_t Sleeps() {
    rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? static_cast<uint64_t>(usage.ru_nvcsw) : 0;
  }

  bool counts_ = false;
  uint64_t waits_ = 0;   // of this thread, where curtail knew
  uint64_t sleeps_ = 0;  // of this thread, as the kernel counts
};

}  // namespace

ServerCall* ServerCall::New(ServerParts& parts, std::shared_ptr<ServerConnection> connection,
                            std::string_view peer, ServedMethod& method, wire::StreamId id,
                            wire::RequestHead& head, TimePoint now) {
  ServerCall* call = nullptr;
  Nanos timeout = parts.default_timeout;
  if (method.handler.kind == MethodHandler::Kind::kUnary) {
    call = internal::NewUnaryCall();
  } else {
    auto* const held = connection->streamed();
    call = method.in_line ? internal::NewHealthWatchCall() : internal::NewStreamCall(held);
    timeout = Nanos::max();  // a stream that is in use lasts
  }
  timeout = head.timeout.value_or(timeout);
  const bool endless = timeout >= TimePoint::max() - now;
  call->context_.Reset(endless ? Deadline::Infinite() : Deadline::At(now + timeout), peer);
  constexpr TimePoint kNever = TimePoint::max() - std::chrono::hours(1);  // so that a grace can be added
  call->context_.identity_ = connection->identity();
  call->context_.charge_ = &connection->charge();
  call->due_ = std::min(call->context_.deadline().when(), kNever);
  call->ended = false;
  std::swap(call->context_.metadata_, head.metadata);
  call->context_.forwarded_ = &parts.forward_metadata;
  call->context_.refusals_ = &parts.refusals;
  call->parts_ = &parts;
  call->connection_ = std::move(connection);
  call->method_ = &method;
  call->id_ = id;
  if (parts.priorities != nullptr) [[unlikely]]
    call->ReadPriority(peer);
  call->stream_open_ = true;
  call->credit_ = Credit::kNone;
  call->refs_.store(1, std::memory_order_relaxed);
  parts.places.CallOpened();
  return call;
}

bool ServerCall::Timed() const {
  constexpr uint32_t kSome = 8;
  static thread_local uint32_t runs = 0;
  return method_->took() >= ReplyOutput::kPriceOfSend || ++runs % kSome == 0;
}

void ServerCall::Reset() {
  context_.Reset(Deadline::Infinite(), {});
  connection_.reset();
}

void ServerCall::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Free();
}

absl::Status ServerCall::RunHandler(std::string_view request, const WaitHint& hint, ObservedCall& observed,
                                    std::string* reply) {
  parts_->output.BeforeHandler(method_->took(), hint);
  Began(observed);
  const bool timed = Timed();
  Fiber* const fiber = Fiber::Current();
  if (fiber != nullptr) fiber->TimeSuspensions(timed);
  const TimePoint begin = timed ? Now() : TimePoint();
  SleepCounter sleeps;
  if (hint.stand_ins) sleeps.Begin(*method_);
  absl::Status status = internal::Guarded(method_->handler.name,
                                          [&] { return method_->handler.handler(context_, request, reply); });
  context_.observed_ = nullptr;
  if (timed) {
    const Nanos suspended = fiber != nullptr ? fiber->suspended() : Nanos::zero();
    const Nanos lasted = Now() - begin;
    method_->Took(lasted - suspended);
    if (status.ok()) method_->Lasted(lasted);
    if (suspended == Nanos::zero() && sleeps.End(*method_)) hint.executor->OnBlocking(method_->kind);
  }
  return status;
}

absl::Status ServerCall::AskInterceptors() {
  absl::Status status = intercepted_.Before(parts_->interceptors, method_->path, context_);
  if (!status.ok()) parts_->limits.Refused();
  return status;
}

void ServerCall::OnStreamEnd(bool ok) {
  stream_open_ = false;
  if (!ok) {
    context_.Cancel();
    OnAbandoned();
  }
  if (method_->handler.kind == MethodHandler::Kind::kStream) OnOver(ok);
  parts_->places.CallClosed();
  Unref();
}

void ServerCall::CheckMetadata(Reply& reply) {
  if (absl::Status wrong = internal::CheckReplyMetadata(context_); !wrong.ok()) {
    reply.status = std::move(wrong);
    context_.trailing_.Clear();
  } else {
    std::swap(reply.initial, context_.initial_);
  }
  context_.initial_.Clear();
}

void ServerCall::Send(Reply& reply, wire::Session& session) {
  if (reply.kind == Reply::kTurn) {
    OnTurn(session);
    return Unref();
  }
  if (stream_open_) {
    if (!reply.initial.empty()) session.SendHead(id_, reply.initial);
    if (reply.has_message) session.SendMessage(id_, std::move(reply.message));
    if (credit_ == Credit::kOwn) [[unlikely]]
      TellCredits();
    session.EndCall(id_, reply.status, context_.trailing_metadata());
  }
  Unref();
}

}  // namespace curtail
