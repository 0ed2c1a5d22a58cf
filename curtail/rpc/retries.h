// SPDX-License-Identifier: Apache-2.0
//
// retries.h - the usual policies of retries and of hedging, for ChannelOptions::service_config.
//
// Use retries where a server may end without a goodbye and another one, or its successor, can
// answer. Use hedging where one of several servers may stall. Do not use either against overload: a
// server that refuses calls says RESOURCE_EXHAUSTED, which is not retried, and hedges add to the
// load.
//
// Code: client/retries.cc writes the policies, client/attempts.cc follows them.
#pragma once

#include <span>
#include <string>

#include "curtail/base/clock.h"

namespace curtail {

// gRPC makes no more than five attempts at a call.
inline constexpr int kMaxRetries = 4;

// The service config that makes a call which ends with UNAVAILABLE again, up to `retries` times:
// after 10 ms, 20 ms, 40 ms and 80 ms, with 20 % jitter. It holds for `methods`, each
// "/package.Service/Method"; without any, for methods that their generated code declares
// idempotent. A channel spends 500 retries more than a tenth of its successes. Empty for 0 retries.
// REQUIRES: 0 <= retries <= kMaxRetries; the caller knows that `methods` may run twice.
std::string RetryConfig(int retries, std::span<const std::string> methods = {});

// The service config that makes a call which has no answer after `delay` at another server, too, up
// to `hedges` times, each `delay` after the one before. The first answer counts. A call that ends
// with UNAVAILABLE is made again at once. Methods and budget are as in RetryConfig().
// REQUIRES: delay >= 0; 1 <= hedges <= kMaxRetries.
std::string HedgeConfig(Nanos delay, int hedges, std::span<const std::string> methods = {});

}  // namespace curtail
