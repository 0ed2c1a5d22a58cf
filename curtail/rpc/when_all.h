// SPDX-License-Identifier: Apache-2.0
//
// when_all.h - different methods of different services, called at once in one expression.
//
// In a coroutine handler:
//
//   auto [user, media] = co_await curtail::WhenAll(ctx, curtail::Ask(users_, User::kFind, find),
//                                                  curtail::Ask(media_, Media::kStore, store));
//   if (!user.ok()) co_return user.status();
//
// In a straight-line handler, where it waits as the current model waits:
//
//   auto [user, media] = curtail::AwaitAll(ctx, curtail::Ask(...), curtail::Ask(...));
//
// Rules:
//  - Deadline: every call has the context's, or less (Asked::Within()); none begins after it.
//  - Cancellation: when the context is cancelled, so is every call that has not ended.
//  - Errors: WhenAll() and AwaitAll() wait for all, and give one absl::StatusOr<Reply> a call, in
//    the order of the arguments. WhenAllOk() and AwaitAllOk() give the replies, or one error: the
//    first call that fails cancels the others. Of several errors the first in the order of the
//    arguments counts that is not CANCELLED.
//  - All channels belong to one Client, as in a fan-out. Calls to one connection share a write.
//
// Code: client/fan_out/ makes the calls.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/method.h"

namespace curtail {

// One call to be made. Value type; the channel outlives it.
template <class Request, class Reply>
struct Asked {
  // Gives it less time than the context's: for what the answer can do without. Then it ends with
  // DEADLINE_EXCEEDED; not so in this process, where it ends with the context.
  Asked Within(Nanos most) && {
    timeout = most;
    return std::move(*this);
  }

  Channel* channel;
  std::string_view path;
  Request request;
  ReplyMetadata* metadata = nullptr;
  Nanos timeout = Nanos::max();
};

// `metadata`, unless it is null, receives what comes with the reply; it outlives the call.
template <class Request, class Reply>
Asked<Request, Reply> Ask(Channel* channel, const Method<Request, Reply>& method,
                          std::type_identity_t<Request> request, ReplyMetadata* metadata = nullptr) {
  if (metadata != nullptr) metadata->Clear();
  return {channel, method.path, std::move(request), metadata};
}

// The same with a generated stub, or whatever has a channel.
template <class Stub, class Request, class Reply>
  requires requires(const Stub& stub) { stub.channel(); }
Asked<Request, Reply> Ask(const Stub& stub, const Method<Request, Reply>& method,
                          std::type_identity_t<Request> request, ReplyMetadata* metadata = nullptr) {
  return Ask(stub.channel(), method, std::move(request), metadata);
}

namespace internal {

// The calls of one expression, as CallBatch wants them. Lies where it was made: CallBatch refers to
// its parts.
template <class... Calls>
class TogetherBatch;

template <class... Requests, class... Replies>
class TogetherBatch<Asked<Requests, Replies>...> {
 public:
  static constexpr size_t kCount = sizeof...(Replies);
  using Outcomes = std::tuple<absl::StatusOr<Replies>...>;
  using AllReplies = absl::StatusOr<std::tuple<Replies...>>;

  TogetherBatch(bool fail_fast, Asked<Requests, Replies>... calls)
      : calls_(std::move(calls)...), fail_fast_(fail_fast) {
    Fill(std::index_sequence_for<Replies...>());
  }
  TogetherBatch(const TogetherBatch&) = delete;
  TogetherBatch& operator=(const TogetherBatch&) = delete;

  CallBatch batch() {
    return {.channels = channels_,
            .path = {},
            .requests = requests_,
            .replies = pointers_,
            .statuses = statuses_,
            .paths = paths_,
            .fail_fast = fail_fast_,
            .metadata = metadata_,
            .timeouts = timeouts_};
  }
  Outcomes TakeOutcomes() { return OutcomesOf(std::index_sequence_for<Replies...>()); }
  AllReplies TakeReplies() {
    if (absl::Status error = FirstError(statuses_); !error.ok()) return error;
    return std::move(replies_);
  }

 private:
  template <size_t... I>
  void Fill(std::index_sequence<I...>) {
    channels_ = {std::get<I>(calls_).channel...};
    paths_ = {std::get<I>(calls_).path...};
    requests_ = {&std::get<I>(calls_).request...};
    pointers_ = {&std::get<I>(replies_)...};
    metadata_ = {std::get<I>(calls_).metadata...};
    timeouts_ = {std::get<I>(calls_).timeout...};
  }
  template <size_t... I>
  Outcomes OutcomesOf(std::index_sequence<I...>) {
    return {Outcome(statuses_[I], std::get<I>(replies_))...};
  }
  template <class Reply>
  static absl::StatusOr<Reply> Outcome(absl::Status& status, Reply& reply) {
    if (!status.ok()) return std::move(status);
    return std::move(reply);
  }

  std::tuple<Asked<Requests, Replies>...> calls_;
  const bool fail_fast_;
  std::tuple<Replies...> replies_;
  std::array<Channel*, kCount> channels_;
  std::array<std::string_view, kCount> paths_;
  std::array<const google::protobuf::MessageLite*, kCount> requests_;
  std::array<google::protobuf::MessageLite*, kCount> pointers_;
  std::array<absl::Status, kCount> statuses_;
  std::array<ReplyMetadata*, kCount> metadata_;
  std::array<Nanos, kCount> timeouts_;
};

// Waits for the calls in a coroutine. `kAllOk`: replies or one error.
template <bool kAllOk, class... Calls>
class TogetherAwaiter : public BatchAwaiter<TogetherAwaiter<kAllOk, Calls...>> {
 public:
  TogetherAwaiter(Context& ctx, Calls... calls)
      : TogetherAwaiter::BatchAwaiter(ctx), together_(kAllOk, std::move(calls)...) {}

  CallBatch batch() { return together_.batch(); }
  auto await_resume() {
    if constexpr (kAllOk) {
      return together_.TakeReplies();
    } else {
      return together_.TakeOutcomes();
    }
  }

 private:
  TogetherBatch<Calls...> together_;
};

}  // namespace internal

// See the top of the file. `ctx` and the channels live until the calls have ended.
template <class... Calls>
auto WhenAll(Context& ctx, Calls... calls) {
  return internal::TogetherAwaiter<false, Calls...>(ctx, std::move(calls)...);
}

template <class... Calls>
auto WhenAllOk(Context& ctx, Calls... calls) {
  return internal::TogetherAwaiter<true, Calls...>(ctx, std::move(calls)...);
}

template <class... Calls>
auto AwaitAll(Context& ctx, Calls... calls) {
  internal::TogetherBatch<Calls...> together(false, std::move(calls)...);
  internal::CallAll(ctx, together.batch());
  return together.TakeOutcomes();
}

template <class... Calls>
auto AwaitAllOk(Context& ctx, Calls... calls) {
  internal::TogetherBatch<Calls...> together(true, std::move(calls)...);
  internal::CallAll(ctx, together.batch());
  return together.TakeReplies();
}

}  // namespace curtail
