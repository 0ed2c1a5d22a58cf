// SPDX-License-Identifier: Apache-2.0
//
// forward.h - the answers of other services as one's own.
#pragma once

#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "curtail/rpc/async_stream.h"
#include "curtail/rpc/coroutine.h"

namespace curtail::apps {

// Sends on the initial metadata of `parts`, and its messages.
template <class Part>
Coroutine ForwardParts(Context& ctx, AsyncClientReader<Part> parts, AsyncStreamWriter<Part>& stream) {
  const Metadata head = co_await parts.InitialMetadata();
  for (const auto& [key, value] : head) ctx.AddInitialMetadata(key, value);
  if (!head.empty()) stream.SendInitialMetadata();  // also of an answer without a part
  for (Part part; co_await parts.Read(&part);) {
    if (co_await stream.Write(part)) continue;
    parts.Cancel();
    break;
  }
  co_return co_await parts.Finish();
}

// The same, and each message when `query` asks for one.
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
