// SPDX-License-Identifier: Apache-2.0
//
// coroutine.h - handlers that run under all twelve models.
//
// A coroutine handler reads like a straight-line one:
//
//   curtail::Coroutine Query(curtail::Context& ctx, const QueryRequest& request,
//                            QueryReply* reply) override {
//     auto answers = co_await curtail::fan_out(ctx, leaves_, Leaf::kNearest, std::move(batch));
//     ... merge ...
//     co_return absl::OkStatus();
//   }
//
// Under the synchronous and fiber models co_await waits as ctx.FanOut() does. Under the
// asynchronous models the coroutine leaves its thread. The thread of the response pool that takes
// the last reply resumes it (muTune, section 3).
//
// Code: call/coroutine.cc.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/exec/wait.h"
#include "curtail/rpc/co.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/service.h"

namespace curtail {
namespace internal {

// A ResumeGate joins the thread that suspends a coroutine and the one whose calls would resume it.
// Calls that have ended before the coroutine is suspended let it go on without a nested resume, so
// that a loop over such calls needs no stack.
class ResumeGate {
 public:
  // For await_suspend(): makes the calls, and returns whether the coroutine stays suspended. It may
  // have gone on, elsewhere, before this returns.
  bool Suspend(std::coroutine_handle<> self, Context& ctx, const CallBatch& batch) {
    coroutine_ = self;
    StartAsync(ctx, batch, &ResumeGate::Ended, this);
    return state_.exchange(kSuspended, std::memory_order_acq_rel) != kEnded;
  }

 private:
  enum State : uint8_t { kBegun, kSuspended, kEnded };

  static void Ended(void* arg) {
    auto* const gate = static_cast<ResumeGate*>(arg);
    const std::coroutine_handle<> coroutine = gate->coroutine_;
    if (gate->state_.exchange(kEnded, std::memory_order_acq_rel) == kSuspended) coroutine.resume();
  }

  std::coroutine_handle<> coroutine_;
  // Atomic: the later of the two sees what the other did (acq_rel), and has the coroutine go on.
  std::atomic<uint8_t> state_{kBegun};
};

// Awaits a batch of calls, which Awaiter::batch() returns.
template <class Awaiter>
class BatchAwaiter {
 public:
  explicit BatchAwaiter(Context& ctx) : ctx_(ctx) {}
  BatchAwaiter(const BatchAwaiter&) = delete;
  BatchAwaiter& operator=(const BatchAwaiter&) = delete;

  bool await_ready() {
    if (CurrentWait().waiting == Waiting::kAsync) return false;
    CallAll(ctx_, batch());
    return true;
  }
  bool await_suspend(std::coroutine_handle<> self) { return gate_.Suspend(self, ctx_, batch()); }

 private:
  CallBatch batch() { return static_cast<Awaiter*>(this)->batch(); }

  Context& ctx_;
  ResumeGate gate_;
};

// `Requests` is a vector of requests, or a reference to one for all.
template <class Request, class Reply, class Requests>
class FanOutAwaiter : public BatchAwaiter<FanOutAwaiter<Request, Reply, Requests>> {
 public:
  FanOutAwaiter(Context& ctx, std::span<Channel* const> channels, std::string_view path, Requests requests)
      : FanOutAwaiter::BatchAwaiter(ctx),
        requests_(std::forward<Requests>(requests)),
        batch_(channels, path, requests_) {}

  bool await_ready() {
    return batch_.wrong() || batch().channels.empty() || FanOutAwaiter::BatchAwaiter::await_ready();
  }
  Replies<Reply> await_resume() { return batch_.Take(); }
  CallBatch batch() { return batch_.batch(); }

 private:
  const Requests requests_;
  TypedBatch<Request, Reply> batch_;
};

// Awaits one call.
class CallAwaiter : public BatchAwaiter<CallAwaiter> {
 public:
  CallAwaiter(Context& ctx, Channel* channel, std::string_view path,
              const google::protobuf::MessageLite* request, google::protobuf::MessageLite* reply)
      : BatchAwaiter(ctx), channel_(channel), path_(path), request_(request), reply_(reply) {}

  absl::Status await_resume() { return std::move(status_); }
  CallBatch batch() {
    return {.channels = {&channel_, 1},
            .path = path_,
            .requests = {&request_, 1},
            .replies = {&reply_, 1},
            .statuses = {&status_, 1}};
  }

 private:
  Channel* const channel_;
  const std::string_view path_;
  const google::protobuf::MessageLite* const request_;
  google::protobuf::MessageLite* const reply_;
  absl::Status status_;
};

// Waits on this thread, or fiber, until `co` has ended.
absl::Status RunToEnd(Coroutine co);

}  // namespace internal

// co_await fan_out(ctx, channels, method, requests) is Context::FanOut() for coroutines: one
// StatusOr<Reply> a channel. `channels` and `ctx` live until then.
template <class Request, class Reply>
auto fan_out(Context& ctx, std::span<Channel* const> channels, const Method<Request, Reply>& method,
             std::vector<Request> requests) {
  return internal::FanOutAwaiter<Request, Reply, std::vector<Request>>(ctx, channels, method.path,
                                                                       std::move(requests));
}

// co_await broadcast(ctx, channels, method, request) is Context::Broadcast() for coroutines.
// `request` lives until then, too.
template <class Request, class Reply>
auto broadcast(Context& ctx, std::span<Channel* const> channels, const Method<Request, Reply>& method,
               const std::type_identity_t<Request>& request) {
  return internal::FanOutAwaiter<Request, Reply, const Request&>(ctx, channels, method.path, request);
}

// co_await call(ctx, channel, method, request, &reply) makes one call. Returns the errors of
// Channel::Call(). All arguments live until the call has ended.
template <class Request, class Reply>
internal::CallAwaiter call(Context& ctx, Channel* channel, const Method<Request, Reply>& method,
                           const std::type_identity_t<Request>& request, Reply* reply) {
  return {ctx, channel, method.path, &request, reply};
}

// Runs around a coroutine handler: it calls `co_await handler(ctx, messages)`, or answers by
// itself. Unlike an interceptor (interceptor.h) it may wait for other services, and it sees the
// request.
using Around = std::function<Coroutine(Context& ctx, Exchange messages, const CoroutineHandler& handler)>;

// Returns the method with `around` around each call, under every model.
// REQUIRES: method.coroutine is not empty.
MethodHandler Surround(const MethodHandler& method, Around around);

namespace internal {

// `types` is static.
MethodHandler CoroutineMethodOf(std::string_view name, const MessageTypes& types, CoroutineHandler method);

// For generated code. `method` is called as method(ctx, const Request&, Reply*) -> Coroutine.
template <class Request, class Reply, class F>
MethodHandler CoroutineMethod(std::string_view name, F method) {
  return CoroutineMethodOf(name, kMessageTypes<Request, Reply>,
                           [method = std::move(method)](Context& ctx, Exchange messages) -> Coroutine {
                             return method(ctx, static_cast<const Request&>(*messages.request),
                                           static_cast<Reply*>(messages.reply));
                           });
}

// As NotImplemented(), for coroutine handlers. `method` is static.
Coroutine NotImplementedCoroutine(std::string_view method);

}  // namespace internal
}  // namespace curtail
