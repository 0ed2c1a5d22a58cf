// SPDX-License-Identifier: Apache-2.0
//
// router_service.h - the mid-tier: a key's shard by its hash, gets to one replica of it, writes to all.
//
// One coroutine a method, which runs under all models. GetAttempts and Write say which replicas it calls, and what
// it makes of their answers.
#pragma once

#include <memory>

#include "apps/router/get_attempts.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/service.h"

namespace curtail::router {

// The service Router, for any number of requests at once. `routing` outlives it. A write that waits for its turn
// keeps its thread, also under the asynchronous models: no thread of the response pool ever waits so, hence the
// turn comes.
// Errors of all methods: INVALID_ARGUMENT (key, value), DEADLINE_EXCEEDED, CANCELLED, or that of a leaf: of a set
// or delete when none of the shard's did it, of a get when one that takes part failed and no other has the key.
[[nodiscard]] std::unique_ptr<Service> MakeRouterService(Routing& routing);

// The mid-tier as a program serves it: calls "leaf", the replicas of shard 0 first, and recalls what it knew.
HostedService HostedMidTier();

}  // namespace curtail::router
