// SPDX-License-Identifier: Apache-2.0
//
// search_service.h - the mid-tier: proposes candidates, asks the leaves that hold them, merges the answers.
//
// One coroutine, which runs under all models. QueryPlanner says what it asks and what it makes of the answers.
#pragma once

#include <memory>

#include "apps/hdsearch/query_planner.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/service.h"

namespace curtail::hdsearch {

// The service Search over the planner's leaves, for any number of requests at once. The planner outlives it.
// Errors of Query: INVALID_ARGUMENT (no query, wrong dimension, a value not finite, k not from 1 to the number of
// images, no such image), or the status of a leaf that failed, with its name.
[[nodiscard]] std::unique_ptr<Service> MakeSearchService(const QueryPlanner& planner);

// The mid-tier as a program serves it: builds the index, and calls "leaf" in shard order.
HostedService HostedMidTier();

}  // namespace curtail::hdsearch
