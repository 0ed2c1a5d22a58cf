// SPDX-License-Identifier: Apache-2.0
//
// async.h - parts of a request that run beside each other and call other services.
//
// Code: curtail/exec/async.h runs the parts.
#pragma once

#include <memory>
#include <utility>

#include "curtail/exec/async.h"
#include "curtail/rpc/context.h"

namespace curtail {

// Runs f(Context&) as async() does, with a Context that has the request's deadline and metadata and
// is cancelled with it:
//
//   auto user = curtail::async(
//       ctx, [&](curtail::Context& part) { return users_.Find(part, request, &reply); });
//   ...
//   absl::Status found = user.get();
//
// `ctx` outlives the future.
template <class F>
auto async(Context& ctx, F f) {
  return async([part = std::make_unique<Context>(&ctx), f = std::move(f)]() mutable { return f(*part); });
}

}  // namespace curtail
