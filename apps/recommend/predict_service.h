// SPDX-License-Identifier: Apache-2.0
//
// predict_service.h - the mid-tier: asks every leaf and averages.
//
// One coroutine, which runs under all models. PredictPlanner says what it asks and what it makes of the answers.
#pragma once

#include <memory>

#include "apps/recommend/predict_planner.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/service.h"

namespace curtail::recommend {

// The service Recommend over the planner's leaves, for any number of requests at once. The planner outlives it.
// Errors of Predict: the status of a leaf that failed, with its name (see PredictPlanner::Merge()).
[[nodiscard]] std::unique_ptr<Service> MakePredictService(const PredictPlanner& planner);

// The mid-tier as a program serves it: calls "leaf".
HostedService HostedMidTier();

}  // namespace curtail::recommend
