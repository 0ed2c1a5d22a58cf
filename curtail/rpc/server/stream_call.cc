// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The handler waits in Read() and Write(), perhaps for as long as the call lasts, so it may not keep a thread
// from the requests behind it. Under fiber models it is a fiber like any other. Under asynchronous models a coroutine
// leaves its thread when it waits. The others move to a thread without a role, as functions given to async() do.
//
// Streams are no requests for observers and policies: how long one lasts is up to its client.
#include "curtail/rpc/server/stream_call.h"

#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/fiber.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/cancellable.h"
#include "curtail/rpc/server/server_connection.h"
#include "curtail/rpc/stream/stream_pipe.h"

namespace curtail::internal {
namespace {

class StreamCall final : public ServerCall, private StreamPipe, private Cancellable {
 public:
  explicit StreamCall(std::atomic<int64_t>* held) : StreamPipe(ServerCall::context_, nullptr, held) {}

  void OnMessage(std::string&& message, wire::Session& session) override {
    StreamPipe::OnMessage(std::move(message), session, id_);
  }
  bool OnRequestEnd(TimePoint) override {
    OnPeerEnd();
    if (!method_->handler.one_request) return false;
    Ref();
    return true;
  }
  bool OnBegin() override {
    if (method_->handler.one_request) return false;
    Ref();
    return true;
  }
  void OnOver(bool ok) override { StreamPipe::OnOver(ok ? absl::OkStatus() : CancelledByCaller(), ok); }
  void OnWritable(wire::Session& session) override { Carry(session, id_, /*posted=*/false); }
  void OnTurn(wire::Session& session) override { Carry(session, id_, /*posted=*/true); }
  size_t queued_bytes() const override { return 0; }  // bounded by the pipe

  void Run(const WaitHint& hint) override {
    absl::Status status;
    if (!moved_) {
      LeaveQueue(0);
      status = Begin(hint);
      if (status.ok()) status = Intercept();
      if (status.ok() && method_->handler.start_stream && CanSuspend(hint)) return Start(hint);
      if (status.ok() && Fiber::Current() == nullptr) {
        moved_ = true;
        if (hint.executor->TryRunAside(this)) return;
        status = absl::ResourceExhaustedError(
            "no thread is free for another stream; raise max_threads, or use a fiber model");
      }
    }
    if (status.ok()) {
      ServerCall::context_.Attach(*this);
      status = RunHandler();
      ServerCall::context_.Detach(*this);
    }
    End(std::move(status));
    Unref();
  }

 private:
  void Free() override {
    TellInterceptors(absl::CancelledError("the server has stopped"));  // unless it was answered
    delete this;
  }
  void NeverRun(absl::StatusCode) override {}
  // Perhaps by another request of this server.
  void OnCancel() override {
    MutexLock lock(mu_);
    WakeAll();
  }

  // The object may be gone when this returns.
  void Start(const WaitHint& hint) {
    Suspend(hint);
    BeginTurn();
    ServerCall::context_.Attach(*this);
    method_->handler.start_stream(
        ServerCall::context_, *this,
        [](void* self, absl::Status status) {
          auto* const call = static_cast<StreamCall*>(self);
          call->context().Detach(*call);
          call->End(call->Whole(std::move(status)));
          call->StopSuspending();
          call->Unref();
        },
        this);
  }

  // A handler that takes the end of the messages for the client's may not know that they were cut short.
  absl::Status Whole(absl::Status status) { return status.ok() ? StreamEnd::status() : status; }

  absl::Status RunHandler() {
    const MethodHandler& handler = method_->handler;
    return Whole(Guarded(handler.name, [&] { return handler.stream(ServerCall::context_, *this); }));
  }

  void End(absl::Status status) {
    SettleOutcome(ServerCall::context_, &status);
    absl::Status told;
    {
      MutexLock lock(mu_);
      // Metadata taken with the first message may still be on its way; entries added since are left out.
      Metadata ahead = std::exchange(end_.initial, {});
      TakeMetadata(end_);
      if (wrote_) end_.initial = std::move(ahead);
      if (end_.status.ok()) end_.status = std::move(status);
      told = end_.status;
      Discard(/*credit=*/false);
    }
    TellInterceptors(told);
    EndWrites();
  }

  bool Try(StreamStep& step) override CURTAIL_REQUIRES(mu_) {
    if (step.kind == StreamStep::Kind::kWrite && !std::exchange(wrote_, true)) TakeMetadata(end_);
    return StreamPipe::Try(step);
  }

  void SendInitialMetadata() override {
    bool kick = false;
    {
      MutexLock lock(mu_);
      if (std::exchange(wrote_, true)) return;
      TakeMetadata(end_);
      head_due_ = end_.status.ok();
      kick = Post();
    }
    if (kick) Kick();
  }

  absl::Status ChargeParsed(std::string_view bytes, const google::protobuf::MessageLite& type) override {
    return ServerCall::context_.ChargeParsed(bytes, type);
  }

  // StreamPipe.
  Outlet outlet() override { return {*connection_, parts_->output.messages()}; }
  void PostTurn() override {
    Ref();  // the turn's
    connection_->Post(&turn_);
  }
  void SendHead(wire::Session& session, wire::StreamId id) override {
    if (end_.initial.empty() && !head_due_) return;
    session.SendHead(id, end_.initial);
    end_.initial.Clear();
    head_due_ = false;
  }
  void SendEnd(wire::Session& session, wire::StreamId id) override {
    session.EndCall(id, end_.status, ServerCall::context_.trailing_metadata());
  }

  // Owned by the thread that runs the handler.
  bool moved_ = false;

  Reply turn_{this, Reply::kTurn};
  // Guarded by the pipe's mutex: the call's end, and the metadata ahead of it.
  Reply end_{this};
  bool head_due_ = false;  // even an empty one
  bool wrote_ = false;
};

}  // namespace

ServerCall* NewStreamCall(std::atomic<int64_t>* held) { return new StreamCall(held); }

}  // namespace curtail::internal
