// SPDX-License-Identifier: Apache-2.0
//
// call_metadata.h - the metadata by which clients and servers steer each other's calls.
#pragma once

#include <string_view>

namespace curtail::internal {

// By which a server says when to try again, in ms, or by a negative number never to.
inline constexpr std::string_view kPushbackKey = "grpc-retry-pushback-ms";
// By which a client says how many attempts have failed.
inline constexpr std::string_view kAttemptsKey = "grpc-previous-rpc-attempts";
// Of a request: how many calls wait for credits behind it.
inline constexpr std::string_view kDemandKey = "curtail-demand";
// Of an answer: how many requests its client may have open.
inline constexpr std::string_view kCreditsKey = "curtail-credits";

}  // namespace curtail::internal
