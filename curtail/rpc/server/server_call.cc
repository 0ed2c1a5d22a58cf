// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/server_call.h"

#include <sys/resource.h>

#include <exception>

#include "curtail/base/strings.h"
#include "curtail/exec/blocking.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/fiber.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/server/server_connection.h"
#include "curtail/rpc/server/stream_call.h"
#include "curtail/rpc/server/watch_call.h"

namespace curtail {

using internal::HeldOutput;
using internal::ObservedCall;
using internal::ServedMethod;
using internal::ServerConnection;
using internal::ServerParts;

namespace {

// True if this run is timed: one in some, but each while the method is slow, for which another clock reading is
// nothing.
bool Timed(const ServedMethod& method) {
  constexpr uint32_t kSome = 8;
  static thread_local uint32_t runs = 0;
  return method.took() >= HeldOutput::kPriceOfSend || ++runs % kSome == 0;
}

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

// One message in, one message or status out.
class UnaryCall final : public ServerCall {
 public:
  void OnMessage(std::string&& message, wire::Session&) override {
    if (has_request_) too_many_ = true;
    has_request_ = true;
    request_.swap(message);  // the session uses the other's memory for a later one
    request_bytes_ = request_.size();
  }

  bool OnRequestEnd(TimePoint now) override {
    Arrived(observed_, now);  // an observer may throw
    Ref();
    return true;
  }

  size_t queued_bytes() const override { return request_bytes_; }
  size_t FreeRequest() override {
    if (!stream_open_) return 0;  // the connection no longer counts it
    EmptyForReuse(request_);
    return std::exchange(request_bytes_, 0);
  }

  void AnswerInLine(wire::Session& session) override {
    observed_.Dequeued(TimePoint());
    reply_.status = CheckCount();
    if (reply_.status.ok()) reply_.status = method_->handler.handler(context_, request_, &reply_.message);
    observed_.Replied(reply_.status.code());
    reply_.has_message = reply_.status.ok();
    Send(reply_, session);
  }

  void Run(const WaitHint& hint) override {
    TakePermit(hint);
    if (!LeaveQueue(request_bytes_)) return Forget();
    observed_.Dequeued(hint.now);
    absl::Status status = Begin(hint);
    if (status.ok()) status = CheckCount();
    if (status.ok()) status = Intercept();
    if (status.ok() && hint.waiting == Waiting::kAsync && method_->handler.continuation) {
      return RunContinuation(hint);
    }
    if (status.ok()) status = RunHandler(request_, hint, observed_, &reply_.message);
    Finish(std::move(status));
  }

  std::string* ReplyBytes() override { return &reply_.message; }

  // The executor's reference goes with the reply: this object may be gone once it is posted.
  void Finish(absl::Status status) override {
    reply_.status = std::move(status);
    internal::SettleOutcome(context_, &reply_.status);
    TakeMetadata(reply_);
    TellInterceptors(reply_.status);
    observed_.Replied(reply_.status.code());
    reply_.has_message = reply_.status.ok();
    std::shared_ptr<ServerConnection> connection = connection_;
    ServerParts& parts = *parts_;
    const Permit permit = PermitToGiveBack(reply_.status);
    connection->Post(&reply_);
    parts.output.Output(std::move(connection));
    permit.GiveBack();
  }

  void GiveUp() override {
    if (beginning == this && std::uncaught_exceptions() > 0) {
      beginning = nullptr;  // RunContinuation() answers, and says why
      return;
    }
    Finish(absl::InternalError(Join("the handler of ", method_->handler.name, " ended without an answer")));
  }

  // For its Recycler.
  bool Recycle() {
    Reset();
    has_request_ = too_many_ = false;
    request_bytes_ = 0;
    EmptyForReuse(request_);
    EmptyForReuse(reply_.message);
    reply_.status = absl::OkStatus();
    reply_.initial.Clear();
    return true;
  }

 private:
  absl::Status CheckCount() const {
    if (has_request_ && !too_many_) return absl::OkStatus();
    return absl::UnimplementedError("a unary call carries exactly one message");
  }

  void Free() override {
    observed_.Over();
    Recycler<UnaryCall>::Give(this);
  }
  // Its turn came when its client no longer waited for the answer.
  void Forget() {
    PermitToGiveBack(absl::CancelledError()).GiveBack();
    Unref();
  }
  void NeverRun(absl::StatusCode code) override { observed_.Replied(code); }
  void OnAbandoned() override {
    if (Abandon(request_bytes_)) std::string().swap(request_);
  }

  // The object may be gone when the handler returns.
  void RunContinuation(const WaitHint& hint) {
    ServedMethod& method = *method_;
    parts_->output.BeforeHandler(method.took(), hint);
    Began(observed_);
    const bool timed = Timed(method);
    const TimePoint begin = timed ? Now() : TimePoint();
    beginning = this;
    absl::Status thrown = internal::Guarded(method.handler.name, [&] {
      method.handler.continuation(context_, request_, Responder(this));
      return absl::OkStatus();
    });
    const bool gave_up = beginning == nullptr;
    beginning = nullptr;
    if (!thrown.ok() && gave_up) return Finish(std::move(thrown));
    if (timed) method.Took(Now() - begin);
  }

  // The call whose continuation handler this thread is in.
  static thread_local UnaryCall* beginning;

  // Owned by the strand's holder until the task is queued, then by the thread that runs it.
  bool has_request_ = false;
  bool too_many_ = false;
  std::string request_;
  size_t request_bytes_ = 0;
  ObservedCall observed_;
  Reply reply_{this};
};

thread_local UnaryCall* UnaryCall::beginning = nullptr;

}  // namespace

ServerCall* ServerCall::New(ServerParts& parts, std::shared_ptr<ServerConnection> connection,
                            std::string_view peer, ServedMethod& method, wire::StreamId id,
                            wire::RequestHead& head, TimePoint now) {
  ServerCall* call = nullptr;
  Nanos timeout = parts.default_timeout;
  if (method.handler.kind == MethodHandler::Kind::kUnary) {
    call = Recycler<UnaryCall>::Take();
  } else {
    auto* const held = connection->streamed();
    call = method.in_line ? internal::NewWatchCall() : internal::NewStreamCall(held);
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
  parts.admission.CallOpened();
  return call;
}

void ServerCall::Reset() {
  context_.Reset(Deadline::Infinite(), {});
  connection_.reset();
}

void ServerCall::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Free();
}

Responder::~Responder() {
  if (call_ != nullptr) call_->GiveUp();
}

void Responder::Finish(absl::Status status, std::string reply) {
  *call_->ReplyBytes() = std::move(reply);
  Finish(std::move(status));
}

std::string* Responder::reply() { return call_->ReplyBytes(); }

void Responder::Finish(absl::Status status) { std::exchange(call_, nullptr)->Finish(std::move(status)); }

absl::Status ServerCall::RunHandler(std::string_view request, const WaitHint& hint, ObservedCall& observed,
                                    std::string* reply) {
  parts_->output.BeforeHandler(method_->took(), hint);
  Began(observed);
  const bool timed = Timed(*method_);
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
  parts_->admission.CallClosed();
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
