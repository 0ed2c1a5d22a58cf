// SPDX-License-Identifier: Apache-2.0
//
// data.h - the name of this application, and how a part of a review is put.
#pragma once

#include <utility>

#include "accounts.curtail.h"
#include "apps/kit/accounts/ids.h"
#include "apps/kit/data/data.h"
#include "apps/kit/once.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "parts.curtail.h"

namespace curtail::media {

inline constexpr char kApplication[] = "media";

using apps::IdsOf;

// Puts a part of the review of `request`, in the name of the client's request.
inline Coroutine PutPart(Context& ctx, const ComposeReview::Stub& compose, uint64_t request, Part part,
                         Composed* reply) {
  part.set_request(request);
  Context named(&ctx);
  apps::Once(ctx, /*caller=*/0).HandOn(named);
  auto [put] = co_await WhenAll(named, Ask(compose, ComposeReview::kPut, std::move(part)));
  if (put.ok()) *reply = *std::move(put);
  co_return put.status();
}

}  // namespace curtail::media
