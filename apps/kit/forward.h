// SPDX-License-Identifier: Apache-2.0
//
// forward.h - the answers of other services as one's own.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "apps/kit/once.h"
#include "curtail/rpc/async_stream.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/fan_out.h"

namespace curtail::apps {

// `stub` and `request` outlive the call.
template <class Stub, class Request, class Reply>
Coroutine Forward(Context& ctx, const Stub& stub, const Method<Request, Reply>& method,
                  const std::type_identity_t<Request>& request, Reply* reply) {
  Channel* const channel = stub.channel();
  auto replies = co_await broadcast(ctx, std::span(&channel, 1), method, request);
  if (replies[0].ok()) reply->Swap(&*replies[0]);
  co_return replies[0].status();
}

// The same for clients, which may have given their request a name (apps/kit/once.h).
template <class Stub, class Request, class Reply>
Coroutine ForwardNamed(Context& ctx, const Stub& stub, const Method<Request, Reply>& method,
                       const std::type_identity_t<Request>& request, Reply* reply) {
  absl::Status named = NameRequest(ctx, method.path, request);
  if (!named.ok()) co_return named;
  co_return co_await Forward(ctx, stub, method, request, reply);
}

// The same for the user `by`, once it is known; fill(inner, user) writes the request. What it refers to outlives the call.
template <class Stub, class Inner, class Reply, class Fill>
Coroutine ForwardFor(Context& ctx, Co<absl::StatusOr<uint64_t>> by, const Stub& stub,
                     const Method<Inner, Reply>& method, Reply* reply, Fill fill) {
  const absl::StatusOr<uint64_t> user = co_await std::move(by);
  if (!user.ok()) co_return user.status();
  Inner inner;
  fill(inner, *user);
  co_return co_await ForwardNamed(ctx, stub, method, inner, reply);
}

// The initial metadata of `parts`, and its messages, each of which it sends when `query` asks for one.
template <class Query, class Part>
Coroutine ForwardParts(Context& ctx, AsyncClientStream<Query, Part> parts, const Query& query,
                       AsyncStreamWriter<Part>& stream) {
  bool asked = co_await parts.Write(query);
  const Metadata head = co_await parts.InitialMetadata();
  for (const auto& [key, value] : head) ctx.AddInitialMetadata(key, value);
  if (!head.empty()) stream.SendInitialMetadata();  // also of an answer without a part
  for (Part part; asked && co_await parts.Read(&part); asked = co_await parts.Write(query)) {
    if (co_await stream.Write(part)) continue;
    parts.Cancel();
    break;
  }
  co_return co_await parts.Finish();
}

// The first error of calls that have all ended: of what WhenAll() gives.
template <class... Outcomes>
absl::Status FirstErrorOf(const std::tuple<Outcomes...>& outcomes) {
  absl::Status status;
  std::apply([&](const auto&... one) { (status.Update(one.status()), ...); }, outcomes);
  return status;
}

}  // namespace curtail::apps
