// SPDX-License-Identifier: Apache-2.0
//
// forward.h - the answer of another service as one's own.
#pragma once

#include <span>
#include <type_traits>

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

}  // namespace curtail::social
