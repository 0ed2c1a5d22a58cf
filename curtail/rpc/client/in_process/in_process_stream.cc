// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A stream between two requests of one process: two ends, each with a queue of serialized messages that have
// come and a mutex of its own. Both wait by the rules of stream_end.cc.
//
//  L1  The caller and the handler hold a reference each. The last to let go deletes the stream. Each touches the other
//      end only while it holds its own reference, under that end's mutex, and with no other mutex of the two.
//  L2  A writer counts the bytes that its peer has not taken (sent_), and waits while they are more than kMost. The
//      reader gives them back (Credit()) as it takes them. So a direction holds kMost and one message.
//  L3  An end that discards what comes gives the bytes back at once: its peer writes on. An end that is cut off gives
//      nothing back, so that its peer waits for the end of the call, or for its own deadline.
//  L4  The handler's context is no part of the caller's, which may be gone first. The caller's end passes the
//      cancellation on. It is told of the handler's end (OnEnd()) once, and then the handler lets go.
#include <atomic>
#include <system_error>
#include <thread>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/fiber.h"
#include "curtail/rpc/call/incoming_interception.h"
#include "curtail/rpc/call/observed_call.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/call/refusal.h"
#include "curtail/rpc/cancellable.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/client/connection/outgoing_interception.h"
#include "curtail/rpc/client/in_process_call.h"
#include "curtail/rpc/in_process.h"
#include "curtail/rpc/service.h"
#include "curtail/rpc/stream/message_queue.h"
#include "curtail/rpc/stream/stream_end.h"

namespace curtail::internal {
namespace {

constexpr size_t kMost = 64u << 10;
constexpr size_t kOverhead = 4;  // of a message, as MessageQueue counts

class LocalEnd : public StreamEnd {
 public:
  explicit LocalEnd(Context& ctx) : StreamEnd(ctx, nullptr) {}

  void EndWrites() {
    {
      MutexLock lock(mu_);
      if (std::exchange(writes_ended_, true)) return;
    }
    peer_->OnPeerEnd();
  }

 protected:
  ~LocalEnd() = default;

  bool Try(StreamStep& step) override CURTAIL_REQUIRES(mu_) {
    const bool ended = cut_ || over_;
    if (step.kind == StreamStep::Kind::kRead) {
      step.ok = !cut_ && !in_.empty();
      if (!step.ok) return ended || peer_ended_;
      in_.Pop(step.message);
      return true;
    }
    if (!ended && sent_ > kMost) return false;
    step.ok = !ended && !writes_ended_;
    if (step.ok) sent_ += step.message->size() + kOverhead;
    return true;
  }
  void Settle(const StreamStep& step) override {
    if (!step.ok) return;
    const size_t bytes = step.message->size() + kOverhead;
    if (step.kind == StreamStep::Kind::kRead) {
      peer_->Credit(bytes);
    } else if (!peer_->OnMessage(std::move(*step.message))) {
      Credit(bytes);  // L3
    }
  }

  // The peer's doing. False: the peer has the bytes back at once.
  bool OnMessage(std::string&& message) {
    MutexLock lock(mu_);
    if (cut_ || over_) return true;
    if (discards_) return false;
    in_.Push(std::move(message));
    Wake(reader_);
    return true;
  }
  void Credit(size_t bytes) {
    MutexLock lock(mu_);
    sent_ -= bytes;
    if (sent_ <= kMost / 2) Wake(writer_);
  }
  void OnPeerEnd() {
    MutexLock lock(mu_);
    peer_ended_ = true;
    Wake(reader_);
  }
  // Drops what has come and what comes.
  void Discard() {
    size_t bytes = 0;
    {
      MutexLock lock(mu_);
      discards_ = true;
      bytes = in_.bytes();
      in_.Clear();
    }
    if (bytes > 0) peer_->Credit(bytes);
  }

  LocalEnd* peer_ = nullptr;                   // immutable once the stream is open
  bool over_ CURTAIL_GUARDED_BY(mu_) = false;  // the peer takes no more

 private:
  MessageQueue in_ CURTAIL_GUARDED_BY(mu_){nullptr};
  size_t sent_ CURTAIL_GUARDED_BY(mu_) = 0;  // L2
  bool peer_ended_ CURTAIL_GUARDED_BY(mu_) = false;
  bool discards_ CURTAIL_GUARDED_BY(mu_) = false;
  bool writes_ended_ CURTAIL_GUARDED_BY(mu_) = false;
};

class CallerEnd final : public LocalEnd {
 public:
  explicit CallerEnd(Context& ctx)
      : LocalEnd(ctx),
        max_request_bytes_(ctx.call_options().max_request_bytes),
        max_reply_bytes_(ctx.call_options().max_reply_bytes) {}

  void Connect(LocalEnd* peer) { peer_ = peer; }
  void Suspend(const WaitHint& hint) { StreamEnd::Suspend(hint); }
  void StopSuspending() { StreamEnd::StopSuspending(); }
  void Discard() { LocalEnd::Discard(); }
  // The initial metadata, unless it has come.
  void OnHead(Metadata&& head) {
    MutexLock lock(mu_);
    if (std::exchange(head_come_, true)) return;
    metadata_.initial = std::move(head);
    WakeAll();
  }
  // The handler has ended.
  void OnEnd(absl::Status status, Metadata&& trailing) {
    MutexLock lock(mu_);
    over_ = ended_ = true;
    if (!cut_) why_ = std::move(status);
    metadata_.trailing = std::move(trailing);
    WakeAll();
  }
  // False: the call has ended.
  bool CutOffBy(absl::Status why) {
    MutexLock lock(mu_);
    if (ended_) return false;
    CutOff(std::move(why));
    return true;
  }
  bool IsCut() {
    MutexLock lock(mu_);
    return cut_;
  }
  void WaitForEnd() { Do({.kind = StreamStep::Kind::kGone}); }
  const Metadata& Head() {
    static const Metadata kNone;
    MutexLock lock(mu_);
    return head_come_ ? metadata_.initial : kNone;
  }
  // REQUIRES: the call has ended
  const ReplyMetadata& metadata() CURTAIL_NO_THREAD_SAFETY_ANALYSIS { return metadata_; }

 private:
  bool Try(StreamStep& step) override CURTAIL_REQUIRES(mu_) {
    switch (step.kind) {
      case StreamStep::Kind::kHead:
        return head_come_ || ended_ || cut_;
      case StreamStep::Kind::kEnd:
        return ended_ || cut_;
      case StreamStep::Kind::kGone:
        return ended_;
      case StreamStep::Kind::kWrite:
        if (step.message->size() > max_request_bytes_)
          CutOff(TooLong(step.message->size(), max_request_bytes_));
        return LocalEnd::Try(step);
      case StreamStep::Kind::kRead:
        break;
    }
    const bool done = LocalEnd::Try(step);
    if (step.ok && step.message->size() > max_reply_bytes_) {
      CutOff(absl::ResourceExhaustedError(Join("message exceeds ", max_reply_bytes_, " bytes")));
      step.ok = false;
    }
    return done;
  }

  const size_t max_request_bytes_;
  const size_t max_reply_bytes_;
  ReplyMetadata metadata_ CURTAIL_GUARDED_BY(mu_);
  bool head_come_ CURTAIL_GUARDED_BY(mu_) = false;
  bool ended_ CURTAIL_GUARDED_BY(mu_) = false;
};

// The handler's end, and its run.
class LocalStream final : private LocalEnd, private Task, private Cancellable {
 public:
  LocalStream(Context& caller, Channel& channel, std::string_view path)
      : LocalEnd(context_),
        context_(Context::Call(), caller),
        service_(*channel.impl().in_process),
        path_(path),
        method_(service_.Find(path)),
        caller_(caller) {
    peer_ = &caller_;
    caller_.Connect(this);
    context_.Attach(*this);
    if (caller.observed() != nullptr) {
      caller.observed()->ChildLeaves(
          {.within = caller.within(), .path = path, .target = service_.name(), .called = Now()},
          {context_.mutable_metadata()});
    }
  }

  CallerEnd& caller() { return caller_; }
  Context& context() { return context_; }

  // Asks the service's interceptors and has the handler begin. Errors: why it does not.
  absl::Status Start(const WaitHint& hint) {
    absl::Status status = CheckInProcess(context_, path_, method_, MethodHandler::Kind::kStream);
    if (status.ok()) status = intercepted_.Before(service_.interceptors(), path_, context_);
    if (status.ok()) {
      Ref();
      status = Launch(hint);
      if (!status.ok()) Unref();
    }
    if (!status.ok()) intercepted_.After(service_.interceptors(), path_, context_, status);
    return status;
  }
  // The caller has gone, or its time is over.
  void Cancel() {
    context_.Cancel();
    MutexLock lock(mu_);
    over_ = true;
    CutOff(CancelledByCaller());
  }
  void Unref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  ~LocalStream() { context_.Detach(*this); }
  void OnCancel() override {
    MutexLock lock(mu_);
    WakeAll();
  }
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }

  absl::Status Launch(const WaitHint& hint) {
    if (method_->start_stream && CanSuspend(hint)) {
      Begin(hint);
    } else if (Fiber::Current() != nullptr) {
      if (!hint.loop->Spawn(this, hint))
        return absl::ResourceExhaustedError("no fiber is free for another stream");
    } else if (hint.executor != nullptr) {
      if (!hint.executor->TryRunAside(this)) {
        return absl::ResourceExhaustedError(
            "no thread is free for another stream; raise max_threads, or use a fiber model");
      }
    } else {
      try {
        std::thread([this] { Run(CurrentWait()); }).detach();
      } catch (const std::system_error&) {
        return absl::ResourceExhaustedError("no thread is to be had for another stream");
      }
    }
    return absl::OkStatus();
  }
  // A coroutine, which holds no thread while it waits.
  void Begin(const WaitHint& hint) {
    Suspend(hint);
    method_->start_stream(
        context_, *this,
        [](void* self, absl::Status status) {
          auto* const stream = static_cast<LocalStream*>(self);
          stream->StopSuspending();
          stream->End(std::move(status));
        },
        this);
  }
  void Run(const WaitHint&) override {
    End(Guarded(path_, [this] { return method_->stream(context_, *this); }));
  }
  void Drop() override { End(absl::UnavailableError("the server has stopped")); }
  std::string_view name() const override { return path_; }

  // The object may be gone when this returns.
  void End(absl::Status status) {
    if (status.ok()) status = StreamEnd::status();
    SettleOutcome(context_, &status);
    if (absl::Status wrong = CheckReplyMetadata(context_); !wrong.ok()) {
      caller_.OnHead({});
      caller_.OnEnd(Told(std::move(wrong)), {});
    } else {
      caller_.OnHead(Metadata(context_.initial_metadata()));
      status = Told(std::move(status));
      caller_.OnEnd(std::move(status), Metadata(context_.trailing_metadata()));
    }
    Unref();
  }
  absl::Status Told(absl::Status status) {
    intercepted_.After(service_.interceptors(), path_, context_, status);
    return status;
  }

  // The first message takes the head along.
  void Settle(const StreamStep& step) override {
    if (step.kind == StreamStep::Kind::kWrite && step.ok) SendInitialMetadata();
    LocalEnd::Settle(step);
  }
  void SendInitialMetadata() override {
    if (std::exchange(head_sent_, true)) return;
    if (wire::CheckMetadata(context_.initial_metadata()).ok())
      caller_.OnHead(Metadata(context_.initial_metadata()));
  }

  Context context_;
  const InProcess& service_;
  const std::string path_;
  const MethodHandler* const method_;
  CallerEnd caller_;
  IncomingInterception intercepted_;
  bool head_sent_ = false;  // the handler's
  // Atomic: the last to let go sees what the other did (acq_rel).
  std::atomic<int> refs_{1};
};

// The caller's hold of it.
class LocalCall final : public ClientStreamCall, private Cancellable {
 public:
  LocalCall(Context& ctx, Channel& channel, std::string_view path, bool suspends)
      : ctx_(ctx), channel_(channel), stream_(new LocalStream(ctx, channel, path)), end_(stream_->caller()) {
    const WaitHint hint = CurrentWait();
    if (absl::Status begun = Begin(path, hint); !begun.ok()) {
      end_.OnHead({});
      end_.OnEnd(std::move(begun), {});
      return;
    }
    began_ = true;
    suspends_ = suspends;
    if (suspends) end_.Suspend(hint);
    ctx.Attach(*this);
  }

  ~LocalCall() final {
    if (suspends_) end_.StopSuspending();
    if (began_) {
      ctx_.Detach(*this);
      Cancel();
      if (!suspends_) end_.WaitForEnd();  // no thread of a response pool waits
    }
    Tell();
    stream_->Unref();
  }

  bool Read(std::string* message) override { return end_.Read(message); }
  bool Write(std::string&& message) override { return end_.Write(std::move(message)); }
  bool Await(StreamStep& step) override { return end_.Await(step); }
  void Fail(absl::Status why) override { end_.Fail(std::move(why)); }
  absl::Status status() override { return end_.status(); }
  void EndWrites() override { end_.EndWrites(); }
  const ReplyMetadata& metadata() const override { return end_.metadata(); }
  void BeginFinish() override {
    if (!end_.IsCut()) EndWrites();
    end_.Discard();
  }
  void CutShort() override {
    if (end_.IsCut()) Cancel();
  }
  absl::Status EndFinish() override {
    Tell();
    return status();
  }
  const Metadata& Head() override { return end_.Head(); }
  void Cancel() override {
    if (end_.CutOffBy(CancelledByCaller())) stream_->Cancel();
  }

 private:
  absl::Status Begin(std::string_view path, const WaitHint& hint) {
    if (ctx_.cancelled()) return CancelledByCaller();
    if (ctx_.deadline().Expired()) return LateCallError(ctx_);
    absl::Status refused = channel_.impl().Intercept(leaving_, path, stream_->context().mutable_metadata());
    if (!refused.ok()) return refused;
    path_ = path;
    return stream_->Start(hint);
  }
  void Tell() { channel_.impl().TellInterceptors(leaving_, path_, status()); }
  void OnCancel() override { Cancel(); }

  Context& ctx_;
  Channel& channel_;
  LocalStream* const stream_;
  CallerEnd& end_;
  OutgoingInterception leaving_;
  std::string path_;
  bool began_ = false;
  bool suspends_ = false;
};

}  // namespace

std::unique_ptr<ClientStreamCall> OpenInProcessStream(Context& ctx, Channel& channel, std::string_view path,
                                                      bool suspends) {
  return std::make_unique<LocalCall>(ctx, channel, path, suspends);
}

}  // namespace curtail::internal
