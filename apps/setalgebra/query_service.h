// SPDX-License-Identifier: Apache-2.0
//
// query_service.h - the mid-tier: asks all leaves and puts their answers one behind the other.
//
// One coroutine, which runs under all models. QueryPlanner says what it asks and what it makes of the answers.
#pragma once

#include <memory>

#include "apps/setalgebra/query_planner.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/service.h"

namespace curtail::setalgebra {

// The service SetAlgebra over the planner's leaves, for any number of requests at once. The planner outlives it.
// Errors of Query: those of QueryPlanner.
[[nodiscard]] std::unique_ptr<Service> MakeQueryService(const QueryPlanner& planner);

// The --leaf-timeout of a mid-tier that is given none.
inline constexpr double kLeafTimeoutMs = 1000;

// The mid-tier as a program serves it: calls "leaf" in shard order.
HostedService HostedMidTier();

}  // namespace curtail::setalgebra
