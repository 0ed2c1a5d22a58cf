// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A stream that one request uses. It belongs to the request: its connection refers to it until the call has
// ended, and the destructor waits for that, which takes no round trip once the call is cancelled. As with a
// fan-out, a plain thread drives the connection of its lane while it waits, and a fiber's loop does it for fibers.
//
// A call that waits for its server (wait_for_ready) begins on a connection that stands. Until there is one it is
// pending: a thread, or a fiber, looks again and again while it opens the stream; for a coroutine the timer does.
#include <algorithm>
#include <memory>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/fiber.h"
#include "curtail/rpc/call/observed_call.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/call/refusal.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/attempts.h"
#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/client/in_process_call.h"
#include "curtail/rpc/stream.h"
#include "curtail/rpc/stream/stream_pipe.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {
namespace {

class StreamCallOfClient final : public ClientStreamCall,
                                 private StreamPipe,
                                 private ClientCall,
                                 private ClientStreamEvents,
                                 private Cancellable {
 public:
  // `suspends`: for a coroutine whose steps wait without a thread.
  StreamCallOfClient(Context& ctx, Channel& channel, std::string_view path, Lane* lane, bool suspends)
      : StreamPipe(ctx, lane), channel_(channel), max_request_bytes_(ctx.call_options().max_request_bytes) {
    stream = this;
    const WaitHint hint = CurrentWait();
    response_ = suspends ? static_cast<ResponseReceiver*>(hint.response) : nullptr;
    const absl::Status refused = Prepare(path);
    if (!refused.ok()) {
      EndUnbegun(refused);
      return;
    }
    {
      MutexLock lock(mu_);
      pending_ = true;
    }
    ctx.Attach(*this);
    attached_ = true;
    Begin(Now());
    suspends ? Suspend(hint) : AwaitStanding();
  }

  ~StreamCallOfClient() final {
    StopSuspending();
    if (attached_) {
      ctx_.Detach(*this);
      Cancel();
      WaitForEnd();
    }
    TellInterceptors();
  }

  bool Read(std::string* message) override { return StreamEnd::Read(message); }
  bool Write(std::string&& message) override { return StreamEnd::Write(std::move(message)); }
  bool Await(StreamStep& step) override { return StreamEnd::Await(step); }
  void Fail(absl::Status why) override { StreamEnd::Fail(std::move(why)); }
  absl::Status status() override { return StreamEnd::status(); }
  void EndWrites() override { StreamPipe::EndWrites(); }
  const ReplyMetadata& metadata() const override { return ClientCall::metadata; }

  void BeginFinish() override {
    if (!IsCut()) EndWrites();
    bool kick = false;
    {
      MutexLock lock(mu_);
      Discard(/*credit=*/true);
      kick = Post();
    }
    if (kick) Kick();
  }
  void CutShort() override {
    if (IsCut()) Cancel();
    SendHeld();
  }
  absl::Status EndFinish() override {
    TellInterceptors();
    return StreamEnd::status();
  }
  const Metadata& Head() override {
    static const Metadata kNone;
    MutexLock lock(mu_);
    return head_come_ || ended_ ? ClientCall::metadata.initial : kNone;
  }

  void Cancel() override {
    {
      MutexLock lock(mu_);
      if (ended_) return;
      CutOff(CancelledByCaller());
      if (pending_) {
        pending_ = false;
        over_ = ended_ = true;
        return WakeAll();
      }
      if (std::exchange(cancelling_, true)) return;
    }
    connection_->Post(&cancel);
    connection_->Kick(Connection::kPosted, nullptr);
  }

 private:
  // Fills in the head. Errors: why the call does not begin.
  absl::Status Prepare(std::string_view path) {
    Channel::Impl& impl = channel_.impl();
    if (ctx_.cancelled()) return CancelledByCaller();
    const TimePoint now = Now();
    attempts_.Begin(impl.policy(), path, ctx_.call_options().wait_for_ready);
    const MethodConfig* const method = attempts_.method();
    if (method != nullptr && method->timeout) limit_ = Deadline::At(now + *method->timeout);
    if (deadline().when() <= now) return LateCallError(ctx_);
    head.path.assign(path);
    head.metadata = ctx_.ChildMetadata();
    if (ctx_.path() != 0) [[unlikely]]
      ctx_.AddPathTo(&head.metadata);
    if (ctx_.observed() != nullptr) {
      ctx_.observed()->ChildLeaves(
          {.within = ctx_.within(), .path = path, .target = channel_.target(), .called = now},
          {head.metadata, &head.trace_parent});
    }
    if (absl::Status refused = impl.Intercept(leaving, path, head.metadata); !refused.ok()) return refused;
    const CallOptions& options = ctx_.call_options();
    head.encoding = options.encoding.value_or(impl.options.encoding);
    head.authority.assign(options.authority);
    head.max_message_bytes = options.max_reply_bytes;
    ends_by_ = deadline();
    return absl::OkStatus();
  }

  const std::shared_ptr<Poller>& poller() const {
    if (response_ != nullptr) return response_->shared_poller();
    return lane_ == nullptr ? CurrentWait().loop->poller() : lane_->poller();
  }

  // Begins the call, ends it, or notes when to look for a connection again (again_at_).
  void Begin(TimePoint now) {
    constexpr Nanos kShortWait = std::chrono::milliseconds(5);  // while an attempt to connect goes on
    Channel::Impl& impl = channel_.impl();
    again_at_ = Deadline::Infinite();
    absl::StatusOr<std::shared_ptr<ClientConnection>> connection = impl.Acquire(poller(), now, head.metadata);
    const bool stands =
        connection.ok() && (*connection)->usable() && (*connection)->connect_deadline().infinite();
    if (attempts_.WaitsForReady() && !stands &&
        (connection.ok() || absl::IsUnavailable(connection.status()))) {
      if (connection.ok() && (*connection)->connect_deadline().Expired()) (*connection)->Look();
      const TimePoint next = connection.ok() ? now : impl.NextAttempt(poller());
      again_at_ = Deadline::At(std::max(next, now + kShortWait));
      waited_ = true;
      return;
    }
    if (!connection.ok()) return EndUnbegun(connection.status());
    {
      MutexLock lock(mu_);
      if (ended_ || cut_) return;  // cancelled meanwhile
      connection_ = *std::move(connection);
      SetTimeout(ends_by_, now);
      connection_->Begin(*this);  // before a cancellation can be posted
      pending_ = false;
      if (std::exchange(waited_, false)) Post();  // what was written meanwhile
    }
    connection_->Kick(Connection::kPosted, nullptr);
  }

  void EndUnbegun(const absl::Status& why) {
    MutexLock lock(mu_);
    pending_ = false;
    over_ = ended_ = true;
    CutOff(why);
  }

  // The connection moves while a thread waits in it. When it stands, what is written goes out without.
  void AwaitStanding() {
    MutexLock lock(mu_);
    while ((pending_ || (lane_ != nullptr && !standing_)) && !ended_ && !cut_) {
      if (ctx_.cancelled() || deadline().Expired()) return;
      if (pending_ && again_at_.Expired()) {
        mu_.Unlock();
        Begin(Now());
        mu_.Lock();
      } else {
        Sleep(reader_, deadline());
      }
    }
  }

  void TellInterceptors() { channel_.impl().TellInterceptors(leaving, head.path, StreamEnd::status()); }

  bool IsCut() {
    MutexLock lock(mu_);
    return cut_;
  }

  // Sure to come: a cancelled call ends in its connection's turn.
  void WaitForEnd() {
    SendHeld();
    Do({.kind = StreamStep::Kind::kGone});
  }
  // The posted message may be held.
  void SendHeld() {
    {
      MutexLock lock(mu_);
      if (!posted_) return;
    }
    Kick();
  }

  // StreamPipe.
  Outlet outlet() override { return {*connection_, channel_.impl().client->held_messages()}; }
  void PostTurn() override { connection_->Post(&turn_); }
  void SendEnd(wire::Session& session, wire::StreamId id) override { session.EndRequest(id); }
  bool Try(StreamStep& step) override CURTAIL_REQUIRES(mu_) {
    switch (step.kind) {
      case StreamStep::Kind::kHead:
        return head_come_ || ended_ || cut_;
      case StreamStep::Kind::kEnd:
        return ended_ || cut_;
      case StreamStep::Kind::kGone:
        return ended_ && !posted_ && (!cancelling_ || cancel_handled_);
      case StreamStep::Kind::kWrite:
        if (step.message->size() > max_request_bytes_)
          CutOff(TooLong(step.message->size(), max_request_bytes_));
        if (absl::Status fits = attempts_.CheckRequest(step.message->size()); !fits.ok())
          CutOff(std::move(fits));
        return StreamPipe::Try(step);
      case StreamStep::Kind::kRead:
        break;
    }
    if (!StreamPipe::Try(step)) return false;
    if (!step.ok) return true;
    if (absl::Status fits = attempts_.CheckReply(step.message->size()); !fits.ok()) {
      CutOff(std::move(fits));
      step.ok = false;
    }
    return true;
  }
  void WaitFor(Waiter& waiter, Deadline deadline) override {
    if (connection_ == nullptr) return Drive(waiter, std::min(deadline, again_at_));
    const Deadline look = connection_->look_at();
    Drive(waiter, std::min(deadline, connection_->usable() ? look : Deadline::Infinite()));
    if (look.Expired()) connection_->Look();
  }
  Deadline Look() override {
    constexpr Nanos kSoon = std::chrono::milliseconds(1);  // the thread that has the connection is about to
    if (again_at_.Expired()) Begin(Now());
    if (connection_ == nullptr) return again_at_;
    if (connection_->look_at().Expired()) connection_->Look();
    if (!connection_->usable()) return Deadline::Infinite();
    return std::max(connection_->look_at(), Deadline::In(kSoon));
  }

  void Drive(Waiter& waiter, Deadline deadline) {
    if (lane_ == nullptr) return waiter.WaitOnFiber(deadline);
    const WaitHint hint = CurrentWait();
    if (hint.waits != nullptr) hint.waits->store(true, std::memory_order_relaxed);
    const Deadline receive_at = hint.receives ? Deadline::In(Executor::kMeanwhile) : Deadline::Infinite();
    lane_->Wait(waiter, std::min(deadline, receive_at), hint.spin);
    if (hint.receives && receive_at.Expired()) hint.executor->ReceiveMeanwhile(hint.thread_index);
    if (hint.waits != nullptr) hint.waits->store(false, std::memory_order_relaxed);
  }

  // ClientStreamEvents.
  void OnStanding() override {
    MutexLock lock(mu_);
    standing_ = true;
    WakeAll();
  }
  void OnHead() override {
    MutexLock lock(mu_);
    head_come_ = true;
    WakeAll();
  }
  void OnMessage(std::string&& message, wire::Session& session, wire::StreamId id) override {
    StreamPipe::OnMessage(std::move(message), session, id);
  }
  void OnTurn(wire::Session& session, wire::StreamId id, bool posted) override { Carry(session, id, posted); }

  // ClientCall. The last touch of this object is one of these, or OnTurn().
  void Finished() override {
    // A server whose clock is ahead may have ended the call.
    if (absl::IsCancelled(ClientCall::status) && ends_by_.Expired())
      ClientCall::status = DeadlinePassed("on a stream");
    OnOver(std::move(ClientCall::status), /*whole=*/true);
    MutexLock lock(mu_);
    ended_ = true;
    WakeAll();
  }
  void CancelHandled() override {
    MutexLock lock(mu_);
    cancel_handled_ = true;
    WakeAll();
  }

  // Cancellable.
  void OnCancel() override { Cancel(); }

  Channel& channel_;
  const size_t max_request_bytes_;
  ResponseReceiver* response_ = nullptr;  // takes the replies, if it is there
  Attempts attempts_;
  Deadline ends_by_ = Deadline::Infinite();  // as its server knows it
  bool attached_ = false;

  // Owned by the thread that looks for a connection.
  Deadline again_at_ = Deadline::Infinite();  // when it does next
  bool waited_ = false;
  std::shared_ptr<ClientConnection> connection_;  // null: the call never began
  ClientOp turn_{ClientOp::Kind::kTurn, this};
  bool standing_ CURTAIL_GUARDED_BY(mu_) = false;
  bool head_come_ CURTAIL_GUARDED_BY(mu_) = false;
  bool ended_ CURTAIL_GUARDED_BY(mu_) = false;
  bool cancelling_ CURTAIL_GUARDED_BY(mu_) = false;
  bool cancel_handled_ CURTAIL_GUARDED_BY(mu_) = false;
};

}  // namespace

std::unique_ptr<ClientStreamCall> OpenStream(Context& ctx, Channel& channel, std::string_view path) {
  if (channel.impl().in_process != nullptr)
    return OpenInProcessStream(ctx, channel, path, /*suspends=*/false);
  Client* const client = channel.impl().client;
  Lane* const lane = Fiber::Current() != nullptr
                         ? nullptr
                         : &client->lane(CurrentWait().thread_index % client->lane_count());
  return std::make_unique<StreamCallOfClient>(ctx, channel, path, lane, /*suspends=*/false);
}

std::unique_ptr<ClientStreamCall> OpenAsyncStream(Context& ctx, Channel& channel, std::string_view path) {
  const WaitHint& hint = CurrentWait();
  const bool suspends =
      hint.waiting == Waiting::kAsync && hint.executor != nullptr && hint.response != nullptr;
  if (!suspends) return OpenStream(ctx, channel, path);
  if (channel.impl().in_process != nullptr) return OpenInProcessStream(ctx, channel, path, suspends);
  return std::make_unique<StreamCallOfClient>(ctx, channel, path, nullptr, suspends);
}

namespace {

// The first message never waits for room.
std::unique_ptr<ClientStreamCall> SendOne(std::unique_ptr<ClientStreamCall> call,
                                          const google::protobuf::MessageLite& request) {
  ParsedStream(*call).Write(request);
  call->EndWrites();
  return call;
}

}  // namespace

std::unique_ptr<ClientStreamCall> OpenStream(Context& ctx, Channel& channel, std::string_view path,
                                             const google::protobuf::MessageLite& request) {
  return SendOne(OpenStream(ctx, channel, path), request);
}

std::unique_ptr<ClientStreamCall> OpenAsyncStream(Context& ctx, Channel& channel, std::string_view path,
                                                  const google::protobuf::MessageLite& request) {
  return SendOne(OpenAsyncStream(ctx, channel, path), request);
}

absl::Status ClientStreamCall::Finish() {
  StreamStep end{.kind = StreamStep::Kind::kEnd};
  StreamStep gone{.kind = StreamStep::Kind::kGone};
  BeginFinish();
  Await(end);
  CutShort();
  Await(gone);
  return EndFinish();
}

const Metadata& ClientStreamCall::InitialMetadata() {
  StreamStep head{.kind = StreamStep::Kind::kHead};
  Await(head);
  return Head();
}

absl::Status FinishWithReply(ClientStreamCall& call, google::protobuf::MessageLite* reply) {
  call.EndWrites();
  ParsedStream stream(call);
  std::string second;
  const bool one = stream.Read(reply);
  const bool more = one && call.Read(&second);
  return CheckOneReply(call.Finish(), one && !more);
}

absl::Status CheckOneReply(absl::Status status, bool one) {
  if (status.ok() && !one) return absl::UnimplementedError("a reply that is not exactly one message");
  return status;
}

}  // namespace curtail::internal
