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

// `Requests` is a vector of requests, or a reference to one for all.
template <class Request, class Reply, class Requests>
class FanOutAwaiter {
 public:
  FanOutAwaiter(Context& ctx, std::span<Channel* const> channels, std::string_view path, Requests requests)
      : ctx_(ctx), requests_(std::forward<Requests>(requests)), batch_(channels, path, requests_) {}
  FanOutAwaiter(const FanOutAwaiter&) = delete;
  FanOutAwaiter& operator=(const FanOutAwaiter&) = delete;

  bool await_ready() {
    if (batch_.wrong() || batch_.batch().channels.empty()) return true;
    if (CurrentWait().waiting == Waiting::kAsync) return false;
    CallAll(ctx_, batch_.batch());
    return true;
  }
  bool await_suspend(std::coroutine_handle<> self) { return gate_.Suspend(self, ctx_, batch_.batch()); }
  Replies<Reply> await_resume() { return batch_.Take(); }

 private:
  Context& ctx_;
  const Requests requests_;
  TypedBatch<Request, Reply> batch_;
  ResumeGate gate_;
};

// Waits on this thread, or fiber, until `co` has ended.
absl::Status RunToEnd(Coroutine co);
// Returns the result of `co`.
absl::Status OutcomeOf(Coroutine& co);

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

namespace internal {

// A coroutine handler over messages of the types that it expects.
using AnyCoroutine = std::function<Coroutine(Context& ctx, const google::protobuf::MessageLite& request,
                                             google::protobuf::MessageLite* reply)>;

// `types` is static.
MethodHandler CoroutineMethodOf(std::string_view name, const MessageTypes& types, AnyCoroutine method);

// For generated code. `method` is called as method(ctx, const Request&, Reply*) -> Coroutine.
template <class Request, class Reply, class F>
MethodHandler CoroutineMethod(std::string_view name, F method) {
  return CoroutineMethodOf(
      name, kMessageTypes<Request, Reply>,
      [method = std::move(method)](Context& ctx, const google::protobuf::MessageLite& request,
                                   google::protobuf::MessageLite* reply) -> Coroutine {
        return method(ctx, static_cast<const Request&>(request), static_cast<Reply*>(reply));
      });
}

// As NotImplemented(), for coroutine handlers. `method` is static.
Coroutine NotImplementedCoroutine(std::string_view method);

}  // namespace internal
}  // namespace curtail
