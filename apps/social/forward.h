// SPDX-License-Identifier: Apache-2.0
//
// forward.h - the answers of other services as one's own.
#pragma once

#include <span>
#include <tuple>
#include <type_traits>

#include "apps/kit/once.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/fan_out.h"

namespace curtail::social {

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
  absl::Status named = apps::NameRequest(ctx, method.path, request);
  if (!named.ok()) co_return named;
  co_return co_await Forward(ctx, stub, method, request, reply);
}

// The first error of calls that have all ended: of what WhenAll() gives.
template <class... Outcomes>
absl::Status FirstErrorOf(const std::tuple<Outcomes...>& outcomes) {
  absl::Status status;
  std::apply([&](const auto&... one) { (status.Update(one.status()), ...); }, outcomes);
  return status;
}

}  // namespace curtail::social
