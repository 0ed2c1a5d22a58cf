// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A stream that one request uses. It belongs to the request: its connection refers to it until the call has
// ended, and the destructor waits for that, which takes no round trip once the call is cancelled. As with a
// fan-out, a plain thread drives the connection of its lane while it waits, and a fiber's loop does it for fibers.
#include <algorithm>
#include <memory>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/fiber.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/channel_impl.h"
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
  StreamCallOfClient(Context& ctx, Channel& channel, std::string_view path, Lane* lane)
      : StreamPipe(ctx, lane),
        channel_(channel),
        max_request_bytes_(ctx.call_options().max_request_bytes),
        deadline_(ctx.deadline()) {
    stream = this;
    if (absl::Status begun = Begin(path); !begun.ok()) {
      MutexLock lock(mu_);
      over_ = ended_ = true;
      CutOff(std::move(begun));
      return;
    }
    ctx.Attach(*this);
    // The connection moves while a thread waits in it. When it stands, what is written goes out without.
    MutexLock lock(mu_);
    while (lane_ != nullptr && !standing_ && !ended_ && !cut_) Sleep(&reader_);
  }

  ~StreamCallOfClient() final {
    if (connection_ != nullptr) {
      ctx_.Detach(*this);
      Cancel();
      WaitForEnd();
    }
    TellInterceptors();
  }

  bool Read(std::string* message) override { return StreamPipe::Read(message); }
  bool Write(std::string&& message) override {
    if (message.size() <= max_request_bytes_) return StreamPipe::Write(std::move(message));
    Fail(TooLong(message.size(), max_request_bytes_));
    return false;
  }
  void Fail(absl::Status why) override { StreamPipe::Fail(std::move(why)); }
  absl::Status status() override { return StreamPipe::status(); }
  void EndWrites() override { StreamPipe::EndWrites(); }
  const ReplyMetadata& metadata() const override { return ClientCall::metadata; }

  const Metadata& InitialMetadata() override {
    static const Metadata kNone;
    MutexLock lock(mu_);
    while (!head_come_ && !ended_ && !cut_) Sleep(&reader_);
    return head_come_ || ended_ ? ClientCall::metadata.initial : kNone;
  }

  absl::Status Finish() override {
    if (!IsCut()) EndWrites();
    bool kick = false;
    {
      MutexLock lock(mu_);
      Discard(/*credit=*/true);
      kick = Post();
    }
    if (kick) Kick();
    {
      MutexLock lock(mu_);
      while (!ended_ && !cut_) Sleep(&reader_);
    }
    if (IsCut()) Cancel();
    WaitForEnd();
    TellInterceptors();
    return StreamPipe::status();
  }

  void Cancel() override {
    {
      MutexLock lock(mu_);
      if (ended_ || std::exchange(cancelling_, true)) return;
      CutOff(absl::CancelledError("cancelled by the caller"));
    }
    connection_->Post(&cancel);
    connection_->Kick(Connection::kPosted, nullptr);
  }

 private:
  absl::Status Begin(std::string_view path) {
    Channel::Impl& impl = channel_.impl();
    if (impl.in_process != nullptr) {
      return absl::UnimplementedError("streams to a service of the same process are not supported");
    }
    if (ctx_.cancelled()) return absl::CancelledError("cancelled by the caller");
    const TimePoint now = Now();
    if (ctx_.deadline().when() <= now)
      return absl::DeadlineExceededError("deadline exceeded before the call");
    head.path.assign(path);
    head.metadata = ctx_.ChildMetadata();
    if (!impl.options.interceptors.empty()) {
      if (absl::Status refused = leaving.Before(channel_, path, head.metadata); !refused.ok()) return refused;
    }
    absl::StatusOr<std::shared_ptr<ClientConnection>> connection =
        impl.Acquire(lane_ == nullptr ? CurrentWait().loop->poller() : lane_->poller(), now, head.metadata);
    if (!connection.ok()) return connection.status();
    connection_ = *std::move(connection);
    const CallOptions& options = ctx_.call_options();
    head.encoding = options.encoding.value_or(impl.options.encoding);
    head.authority.assign(options.authority);
    head.max_message_bytes = options.max_reply_bytes;
    SetTimeout(ctx_.deadline(), now);
    connection_->Begin(*this);
    connection_->Kick(Connection::kPosted, nullptr);
    return absl::OkStatus();
  }

  void TellInterceptors() {
    if (leaving.passed()) leaving.After(channel_, head.path, StreamPipe::status());
  }

  bool IsCut() {
    MutexLock lock(mu_);
    return cut_;
  }

  // Sure to come: a cancelled call ends in its connection's turn.
  void WaitForEnd() {
    MutexLock lock(mu_);
    if (posted_) {  // it may be held
      mu_.Unlock();
      Kick();
      mu_.Lock();
    }
    while (!ended_ || posted_ || (cancelling_ && !cancel_handled_)) {
      Waiter waiter(lane_);
      reader_ = &waiter;
      mu_.Unlock();
      Drive(waiter, Deadline::Infinite());
      mu_.Lock();
      reader_ = nullptr;
    }
  }

  // StreamPipe.
  Outlet outlet() override { return {*connection_, channel_.impl().client->held_messages()}; }
  void PostTurn() override { connection_->Post(&turn_); }
  void SendEnd(wire::Session& session, wire::StreamId id) override { session.EndRequest(id); }
  void WaitFor(Waiter& waiter) override {
    const Deadline look = connection_->look_at();
    Drive(waiter, std::min(ctx_.deadline(), connection_->usable() ? look : Deadline::Infinite()));
    if (look.Expired()) connection_->Look();
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
    if (absl::IsCancelled(ClientCall::status) && deadline_.Expired())
      ClientCall::status = absl::DeadlineExceededError("deadline exceeded on a stream");
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
  const Deadline deadline_;                       // as its server knows it
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
  Client* const client = channel.impl().client;
  Lane* const lane = Fiber::Current() != nullptr
                         ? nullptr
                         : &client->lane(CurrentWait().thread_index % client->lane_count());
  return std::make_unique<StreamCallOfClient>(ctx, channel, path, lane);
}

std::unique_ptr<ClientStreamCall> OpenStream(Context& ctx, Channel& channel, std::string_view path,
                                             const google::protobuf::MessageLite& request) {
  std::unique_ptr<ClientStreamCall> call = OpenStream(ctx, channel, path);
  ParsedStream(*call).Write(request);
  call->EndWrites();
  return call;
}

absl::Status FinishWithReply(ClientStreamCall& call, google::protobuf::MessageLite* reply) {
  call.EndWrites();
  ParsedStream stream(call);
  std::string second;
  const bool one = stream.Read(reply);
  const bool more = one && call.Read(&second);
  absl::Status status = call.Finish();
  if (status.ok() && (!one || more))
    return absl::UnimplementedError("a reply that is not exactly one message");
  return status;
}

}  // namespace curtail::internal
