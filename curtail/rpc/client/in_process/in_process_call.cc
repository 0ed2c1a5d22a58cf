// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The rules are those of in_process.h. A batch is split: the calls that stay, and the rest, which is a batch of
// its own over connections. Each part knows only the places of its own calls in the arrays of the whole.
//
//  P1  An asynchronous batch owns itself from StartAsyncInProcess() until its count reaches zero. The count holds one for
//      each call that stays, one for the rest, and one for the beginning.
//  P2  Whoever takes the count to zero calls done(), and touches the batch no more. That may be the thread that began it.
#include "curtail/rpc/in_process.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/rpc/async.h"
#include "curtail/rpc/call/incoming_interception.h"
#include "curtail/rpc/call/observed_call.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/call/refusal.h"
#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/client/connection/outgoing_interception.h"
#include "curtail/rpc/client/in_process_call.h"
#include "google/protobuf/message_lite.h"

namespace curtail {

using google::protobuf::MessageLite;

struct InProcess::Methods {
  struct PathHash {
    using is_transparent = void;
    size_t operator()(std::string_view path) const { return std::hash<std::string_view>{}(path); }
  };
  std::unordered_map<std::string, MethodHandler, PathHash, std::equal_to<>> by_path;
};

InProcess::InProcess(std::string name, std::vector<ServerInterceptor*> interceptors)
    : name_(std::move(name)), interceptors_(std::move(interceptors)), methods_(std::make_unique<Methods>()) {}
InProcess::~InProcess() = default;

absl::Status InProcess::Serve(Service& service) {
  for (MethodHandler& handler : service.Handlers()) {
    std::string path = Join("/", service.FullName(), "/", handler.name);
    if (!methods_->by_path.try_emplace(path, std::move(handler)).second) {
      return absl::InvalidArgumentError(Join("method ", path, " is served twice"));
    }
  }
  return absl::OkStatus();
}

const MethodHandler* InProcess::Find(std::string_view path) const {
  const auto found = methods_->by_path.find(path);
  return found == methods_->by_path.end() ? nullptr : &found->second;
}

namespace internal {

absl::Status CheckInProcess(const Context& ctx, std::string_view path, const MethodHandler* method,
                            MethodHandler::Kind kind) {
  if (ctx.depth() > InProcess::kMaxDepth) {
    return absl::ResourceExhaustedError(Join("calls in this process nest more than ", InProcess::kMaxDepth,
                                             " deep at ", path,
                                             "; do services call each other in a circle?"));
  }
  if (method == nullptr) return absl::UnimplementedError(Join("unknown method ", path));
  if (method->kind != kind) {
    const char* const what = kind == MethodHandler::Kind::kUnary ? "a unary method" : "a method that streams";
    return absl::UnimplementedError(Join(path, " is not ", what));
  }
  return wire::CheckMetadata(ctx.metadata());
}

namespace {

// The call at place `index` of a batch.
struct Call {
  Call(const CallBatch& batch, size_t i)
      : index(i),
        channel(*batch.channels[i]),
        service(channel.impl().in_process),
        method(service == nullptr ? nullptr : service->Find(batch.PathOf(i))),
        path(batch.PathOf(i)),
        request(*batch.requests[i]),
        reply(batch.replies[i]),
        status(&batch.statuses[i]),
        metadata(batch.metadata.empty() ? nullptr : batch.metadata[i]) {}

  bool never_waits() const { return method != nullptr && method->never_waits; }
  bool typed() const { return method->typed.accepts != nullptr && method->typed.accepts(request, *reply); }

  const size_t index;  // in the batch
  const Channel& channel;
  const InProcess* const service;
  const MethodHandler* const method;
  const std::string_view path;
  const MessageLite& request;
  MessageLite* const reply;
  absl::Status* const status;
  ReplyMetadata* const metadata;  // null: nobody asks for it
};

absl::Status ParseReply(const std::string& bytes, MessageLite* reply) {
  if (reply->ParseFromString(bytes)) return absl::OkStatus();
  return absl::InternalError(Join("reply is not a valid ", reply->GetTypeName()));
}

// Why the call must not begin at all, if so.
absl::Status Refusal(const Context& ctx, const Call& call) {
  if (ctx.cancelled()) return CancelledByCaller();
  if (ctx.deadline().Expired()) return LateCallError(ctx);
  return CheckInProcess(ctx, call.path, call.method, MethodHandler::Kind::kUnary);
}

// The metadata that the handler adds to its answer goes to the caller, under the rules of a call over a connection.
absl::Status WithMetadata(const Context& ctx, const Call& call, absl::Status status) {
  if (ctx.initial_metadata().empty() && ctx.trailing_metadata().empty()) return status;
  if (absl::Status wrong = CheckReplyMetadata(ctx); !wrong.ok()) return wrong;
  if (call.metadata != nullptr) *call.metadata = {ctx.initial_metadata(), ctx.trailing_metadata()};
  return status;
}

// The gates between a caller and a handler of its process: interceptors of both, and the caller's limits.
class Passage {
 public:
  // Into the handler, whose context is `ctx`. Errors: why it must not run.
  absl::Status Enter(Context& ctx, const Call& call, const CallOptions& options) {
    max_reply_bytes_ = options.max_reply_bytes;
    absl::Status status = call.channel.impl().Intercept(leaving_, call.path, ctx.mutable_metadata());
    if (status.ok()) status = Refusal(ctx, call);
    if (status.ok() && options.max_request_bytes != SIZE_MAX) {
      const size_t bytes = call.request.ByteSizeLong();
      if (bytes > options.max_request_bytes) status = TooLong(bytes, options.max_request_bytes);
    }
    if (status.ok() && !call.service->interceptors().empty()) {
      status = intercepted_.Before(call.service->interceptors(), call.path, ctx);
    }
    return status;
  }

  // Back to the caller. Returns the call's status.
  absl::Status Leave(Context& ctx, const Call& call, absl::Status status) {
    SettleOutcome(ctx, &status);
    status = WithMetadata(ctx, call, std::move(status));
    if (call.service != nullptr) {
      intercepted_.After(call.service->interceptors(), call.path, ctx, status);
    }
    if (status.ok() && max_reply_bytes_ != SIZE_MAX && call.reply->ByteSizeLong() > max_reply_bytes_) {
      status = absl::ResourceExhaustedError(Join("message exceeds ", max_reply_bytes_, " bytes"));
    }
    call.channel.impl().TellInterceptors(leaving_, call.path, status);
    return status;
  }

 private:
  OutgoingInterception leaving_;
  IncomingInterception intercepted_;
  size_t max_reply_bytes_ = SIZE_MAX;
};

// Tells the observers of the request about one call of it. What its handler calls is within this one.
class ToldCall {
 public:
  // `ctx` is the handler's.
  void Began(Context& ctx, const Call& call, const Context& parent) {
    if (ctx.observed() == nullptr) return;
    told_ = {.index = static_cast<uint32_t>(call.index),
             .ordinal = ctx.observed()->Number(1),
             .within = parent.within(),
             .path = call.path,
             .target = call.channel.target(),
             .called = Now()};
    ctx.SetWithin(told_.ordinal);
    ctx.observed()->ChildLeaves(told_, {ctx.mutable_metadata()});
    ctx.observed()->ChildCalled(told_);
  }
  void Ended(const Context& ctx, const absl::Status& status) {
    if (ctx.observed() == nullptr) return;
    told_.answered = Now();
    told_.code = status.code();
    const ObservedCall& observed = *ctx.observed();
    if (Kept(observed)) {
      for (ChildCall& place : observed.Keep(1)) place = told_;
    }
    observed.ChildAnswered(told_);
  }

 private:
  bool Kept(const ObservedCall& observed) const {
    if (observed.wants(kKeepsChildren)) return true;
    return observed.wants(kKeepsLateChildren) &&
           (told_.code != absl::StatusCode::kOk || told_.answered > observed.Late());
  }

  ChildCall told_;
};

absl::Status RunOverBytes(Context& ctx, const Call& call) {
  if (!call.method->handler) {
    return absl::UnimplementedError(Join(call.path, " runs under asynchronous models only"));
  }
  std::string bytes, out;
  if (!call.request.SerializeToString(&bytes)) {
    return absl::InternalError(
        "cannot serialize the request (larger than 2 GiB, or a required field is unset)");
  }
  const absl::Status status = call.method->handler(ctx, bytes, &out);
  return status.ok() ? ParseReply(out, call.reply) : status;
}

absl::Status Run(Context& ctx, const Call& call) {
  call.reply->Clear();
  return Guarded(call.path, [&] {
    if (call.typed() && call.method->typed.run) return call.method->typed.run(ctx, call.request, call.reply);
    return RunOverBytes(ctx, call);
  });
}

void RunHere(Context& parent, const CallBatch& batch, size_t i) {
  Context ctx(&parent, Context::Call());
  const Call call(batch, i);
  ToldCall told;
  told.Began(ctx, call, parent);
  Passage passage;
  absl::Status status = passage.Enter(ctx, call, parent.call_options());
  if (status.ok()) status = Run(ctx, call);
  *call.status = passage.Leave(ctx, call, std::move(status));
  told.Ended(ctx, *call.status);
}

// The calls of a batch that go over connections, as a batch of its own.
class Rest {
 public:
  explicit Rest(const CallBatch& whole) : whole_(whole) {
    for (size_t i = 0; i < whole.channels.size(); ++i) {
      if (whole.channels[i]->impl().in_process != nullptr) continue;
      places_.push_back(i);
      channels_.push_back(whole.channels[i]);
      paths_.push_back(whole.PathOf(i));
      requests_.push_back(whole.requests[i]);
      replies_.push_back(whole.replies[i]);
      metadata_.push_back(whole.metadata.empty() ? nullptr : whole.metadata[i]);
      if (!whole.timeouts.empty()) timeouts_.push_back(whole.timeouts[i]);
    }
    statuses_.resize(places_.size());
  }

  bool empty() const { return places_.empty(); }
  CallBatch batch() {
    return {.channels = channels_,
            .path = {},
            .requests = requests_,
            .replies = replies_,
            .statuses = {statuses_.data(), statuses_.size()},
            .paths = paths_,
            .fail_fast = whole_.fail_fast,
            .metadata = metadata_,
            .timeouts = timeouts_};
  }
  bool Failed() const {
    return std::any_of(statuses_.begin(), statuses_.end(), [](const absl::Status& s) { return !s.ok(); });
  }
  void Collect() {
    for (size_t i = 0; i < places_.size(); ++i) whole_.statuses[places_[i]] = std::move(statuses_[i]);
  }

 private:
  const CallBatch whole_;
  std::vector<size_t> places_;
  std::vector<Channel*> channels_;
  std::vector<std::string_view> paths_;
  std::vector<const MessageLite*> requests_;
  std::vector<MessageLite*> replies_;
  std::vector<ReplyMetadata*> metadata_;
  std::vector<Nanos> timeouts_;
  std::vector<absl::Status> statuses_;
};

// One call of an asynchronous batch that stays.
class StartedHere final : public Answerable {
 public:
  StartedHere(Context* parent, const CallBatch& batch, size_t i, void (*ended)(void*, bool), void* arg)
      : options_(parent->call_options()),
        ctx_(parent, Context::Call()),
        call_(batch, i),
        ended_(ended),
        arg_(arg) {
    told_.Began(ctx_, call_, *parent);
  }

  // The object may be gone when this returns.
  void Start() {
    absl::Status refused = passage_.Enter(ctx_, call_, options_);
    if (!refused.ok()) return End(std::move(refused));
    call_.reply->Clear();
    const MethodHandler& method = *call_.method;
    if (method.typed.start && call_.typed()) {
      return method.typed.start(
          ctx_, call_.request, call_.reply,
          [](void* self, absl::Status status) { static_cast<StartedHere*>(self)->End(std::move(status)); },
          this);
    }
    if (method.continuation && !method.typed.run) return StartOverBytes();
    End(Run(ctx_, call_));
  }

  std::string* ReplyBytes() override { return &out_; }
  void Finish(absl::Status status) override {
    if (status.ok()) status = ParseReply(out_, call_.reply);
    End(std::move(status));
  }
  void GiveUp() override {
    if (beginning_ && std::uncaught_exceptions() > 0) {
      gave_up_ = true;  // StartOverBytes() answers, and says why
      return;
    }
    Finish(absl::InternalError(Join("the handler of ", call_.path, " ended without an answer")));
  }

 private:
  void StartOverBytes() {
    if (!call_.request.SerializeToString(&in_)) {
      return End(absl::InternalError(
          "cannot serialize the request (larger than 2 GiB, or a required field is unset)"));
    }
    beginning_ = true;
    absl::Status thrown = Guarded(call_.path, [&] {
      call_.method->continuation(ctx_, in_, Responder(this));
      return absl::OkStatus();
    });
    if (!thrown.ok() && gave_up_) End(std::move(thrown));
  }

  void End(absl::Status status) {
    status = passage_.Leave(ctx_, call_, std::move(status));
    const bool ok = status.ok();
    told_.Ended(ctx_, status);
    *call_.status = std::move(status);
    ended_(arg_, ok);
  }

  const CallOptions& options_;  // of the whole batch
  Context ctx_;
  const Call call_;
  ToldCall told_;
  Passage passage_;
  void (*const ended_)(void*, bool ok);
  void* const arg_;
  std::string in_, out_;
  // Owned by the thread that begins the call.
  bool beginning_ = false;
  bool gave_up_ = false;
};

// Replies within the process are not measured: no object that had one is kept for the next.
void SetLargest(const CallBatch& batch) {
  if (batch.largest != nullptr) *batch.largest = kKeptBytes + 1;
}

// An asynchronous batch of which some calls stay.
class MixedBatch {
 public:
  MixedBatch(Context& ctx, const CallBatch& batch, void (*done)(void*), void* arg)
      : together_(&ctx), batch_(batch), rest_(batch), done_(done), arg_(arg) {}

  // Deletes itself once all calls have ended (P1).
  void Start() {
    size_t here = 0;
    for (Channel* channel : batch_.channels) here += channel->impl().in_process != nullptr;
    calls_ = std::make_unique<std::optional<StartedHere>[]>(here);
    pending_.store(here + (rest_.empty() ? 0 : 1) + 1, std::memory_order_relaxed);
    if (!rest_.empty()) {
      StartAsync(
          together_, rest_.batch(),
          [](void* self) {
            auto* const batch = static_cast<MixedBatch*>(self);
            const bool failed = batch->rest_.Failed();
            batch->rest_.Collect();
            batch->Ended(!failed);
          },
          this);
    }
    for (size_t i = 0, next = 0; i < batch_.channels.size(); ++i) {
      if (batch_.channels[i]->impl().in_process == nullptr) continue;
      auto& call = calls_[next++];
      call.emplace(
          &together_, batch_, i, [](void* self, bool ok) { static_cast<MixedBatch*>(self)->Ended(ok); },
          this);
      call->Start();
    }
    Ended(true);
  }

 private:
  void Ended(bool ok) {
    if (!ok && batch_.fail_fast && !failed_.exchange(true, std::memory_order_relaxed)) together_.Cancel();
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    void (*const done)(void*) = done_;
    void* const arg = arg_;
    SetLargest(batch_);
    delete this;
    done(arg);  // P2
  }

  Context together_;  // of all calls: the first failure cancels it, if the batch ends with that
  const CallBatch batch_;
  Rest rest_;
  void (*const done_)(void*);
  void* const arg_;
  std::unique_ptr<std::optional<StartedHere>[]> calls_;
  // Atomic: calls that have not ended (acq_rel, so that the last sees what the others wrote).
  std::atomic<size_t> pending_{0};
  // Atomic, relaxed: the first call that fails cancels the others.
  std::atomic<bool> failed_{false};
};

}  // namespace

bool StaysInProcess(const CallBatch& batch) {
  for (Channel* channel : batch.channels) {
    if (channel->impl().in_process != nullptr) return true;
  }
  return false;
}

void CallAllInProcess(Context& ctx, const CallBatch& batch) {
  const size_t n = batch.channels.size();
  if (n == 1) {
    RunHere(ctx, batch, 0);
    return SetLargest(batch);
  }
  Rest rest(batch);
  // All that may wait runs beside the last such call, which runs here.
  Context together(&ctx);
  std::atomic<bool> failed{false};
  const auto run = [&](size_t i) {
    RunHere(together, batch, i);
    if (batch.fail_fast && !batch.statuses[i].ok() && !failed.exchange(true)) together.Cancel();
  };
  const auto beside = [&](size_t i) { return curtail::async([&run, i] { run(i); }); };
  const auto call_rest = [&] {
    CallAll(together, rest.batch());
    if (batch.fail_fast && rest.Failed()) together.Cancel();
  };
  std::vector<decltype(beside(0))> others;
  std::optional<decltype(curtail::async(call_rest))> over_connections;
  if (!rest.empty()) over_connections.emplace(curtail::async(call_rest));
  std::vector<size_t> here;
  for (size_t i = 0; i < n; ++i) {
    if (batch.channels[i]->impl().in_process == nullptr) continue;
    if (Call(batch, i).never_waits() || i + 1 == n) {
      here.push_back(i);
    } else {
      others.push_back(beside(i));
    }
  }
  for (const size_t i : here) run(i);
  for (auto& other : others) other.get();
  if (over_connections) over_connections->get();
  rest.Collect();
  SetLargest(batch);
}

void StartAsyncInProcess(Context& ctx, const CallBatch& batch, void (*done)(void*), void* arg) {
  (new MixedBatch(ctx, batch, done, arg))->Start();
}

}  // namespace internal
}  // namespace curtail
