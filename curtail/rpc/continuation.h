// SPDX-License-Identifier: Apache-2.0
//
// continuation.h - handlers of the asynchronous models as the paper has them: they begin their
// calls and return, and a function of theirs answers the request when the replies have come.
//
// Code: call/service.cc; client/fan_out/async_fanout.cc makes the calls.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/exec/internal/recycler.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/service.h"

namespace curtail {

// The paper's InvokeLeafAsync (muTune, section 3): calls `method` on all channels at once and
// returns. `requests` is a vector, one a channel, or one request for all. When each call has
// answered or failed, a thread of the response pool runs finalize(tag, results), perhaps before
// this has returned. Do not touch the contents of `tag`, nor `ctx`, after the call. `channels` and
// `ctx` live until `finalize` ends.
//
// Calls may leave only when the handler returns, together with the next request's: return
// soon. For continuation handlers: elsewhere every result is FAILED_PRECONDITION, at once.
template <class Request, class Reply, class Requests, class Tag, class Finalize>
  requires std::same_as<Requests, Request> || std::same_as<Requests, std::vector<Request>>
void InvokeLeafAsync(Context& ctx, std::span<Channel* const> channels, const Method<Request, Reply>& method,
                     Requests requests, Tag tag, Finalize finalize) {
  struct State : InBlock {
    State(Requests r, Tag t, Finalize f)
        : requests(std::move(r)), tag(std::move(t)), finalize(std::move(f)) {}
    const Requests requests;
    Tag tag;
    Finalize finalize;
    std::optional<internal::TypedBatch<Request, Reply>> batch;
    static void Done(void* arg) {
      const std::unique_ptr<State> self(static_cast<State*>(arg));
      self->finalize(std::move(self->tag), self->batch->Take());
    }
  };
  auto state = std::make_unique<State>(std::move(requests), std::move(tag), std::move(finalize));
  state->batch.emplace(channels, method.path, state->requests);
  State* const raw = state.release();
  if (raw->batch->wrong()) return State::Done(raw);
  internal::StartAsync(ctx, raw->batch->batch(), &State::Done, raw);
}

// A Responder with the type of the answer.
template <class Reply>
class TypedResponder {
 public:
  explicit TypedResponder(Responder responder) : responder_(std::move(responder)) {}
  // Answers. See Responder::Finish().
  void Finish(const Reply& reply) { responder_.Finish(internal::SerializeReply(reply, responder_.reply())); }
  // REQUIRES: not OK.
  void Fail(absl::Status status) { responder_.Finish(std::move(status)); }

 private:
  Responder responder_;
};

namespace internal {

// A continuation handler over a message of the type that it expects.
using AnyContinuation =
    std::function<void(Context& ctx, const google::protobuf::MessageLite& request, Responder responder)>;

// `types` is static.
MethodHandler ContinuationMethodOf(std::string_view name, const MessageTypes& types, AnyContinuation method);

// For generated code. `method` is called as method(ctx, const Request&, TypedResponder<Reply>);
// `request` lives until it returns.
template <class Request, class Reply, class F>
MethodHandler ContinuationMethod(std::string_view name, F method) {
  return ContinuationMethodOf(
      name, kMessageTypes<Request, Reply>,
      [method = std::move(method)](Context& ctx, const google::protobuf::MessageLite& request,
                                   Responder responder) {
        method(ctx, static_cast<const Request&>(request), TypedResponder<Reply>(std::move(responder)));
      });
}

}  // namespace internal
}  // namespace curtail
