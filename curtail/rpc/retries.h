// SPDX-License-Identifier: Apache-2.0
//
// retries.h - the usual retry policy, for ChannelOptions::service_config.
//
// Use it where a server may end without a goodbye and another one, or its successor, can answer. Do
// not use it against overload: a server that refuses calls says RESOURCE_EXHAUSTED, which is not
// retried.
#pragma once

#include <span>
#include <string>

namespace curtail {

// gRPC makes no more than five attempts at a call.
inline constexpr int kMaxRetries = 4;

// The service config that makes a call which ends with UNAVAILABLE again, up to `retries` times:
// after 10 ms, 20 ms, 40 ms and 80 ms, with 20 % jitter. It holds for `methods`, each
// "/package.Service/Method"; without any, for methods that their generated code declares
// idempotent. A channel spends 500 retries more than a tenth of its successes. Empty for 0 retries.
// REQUIRES: 0 <= retries <= kMaxRetries; the caller knows that `methods` may run twice.
std::string RetryConfig(int retries, std::span<const std::string> methods = {});

}  // namespace curtail
