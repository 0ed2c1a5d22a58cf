// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/unary_call.h"

#include <exception>
#include <string>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/internal/recycler.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/server/server_connection.h"

namespace curtail {

using internal::ObservedCall;
using internal::ServedMethod;
using internal::ServerConnection;
using internal::ServerParts;

namespace {

// It goes to a Recycler, with the memory of its messages, and a later request of any connection takes it from there.
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
    if (!LeaveQueue(request_bytes_)) return Forget(hint);
    observed_.Dequeued(hint.now);
    absl::Status status = Begin(hint);
    if (status.ok()) status = CheckCount();
    if (status.ok()) status = Intercept();
    if (status.ok() && hint.waiting == Waiting::kAsync && method_->handler.continuation) {
      return RunContinuation(hint);
    }
    if (status.ok()) status = RunHandler(request_, hint, observed_, &reply_.message);
    Answer(std::move(status), hint.look);
  }

  std::string* ReplyBytes() override { return &reply_.message; }

  void Finish(absl::Status status) override { Answer(std::move(status), nullptr); }

  // The executor's reference goes with the reply: this object may be gone once it is posted. `look`: see
  // ServerFence::Ended().
  void Answer(absl::Status status, bool* look) {
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
    permit.GiveBack(look);
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
  void Forget(const WaitHint& hint) {
    PermitToGiveBack(absl::CancelledError()).GiveBack(hint.look);
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
    const bool timed = Timed();
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

ServerCall* internal::NewUnaryCall() { return Recycler<UnaryCall>::Take(); }

}  // namespace curtail
