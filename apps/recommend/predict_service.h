// SPDX-License-Identifier: Apache-2.0
//
// predict_service.h - the mid-tier: asks every leaf and averages.
//
// Two handlers of one service, which differ only in how they wait: straight-line for the synchronous and
// fiber models, a coroutine for the asynchronous ones. What they do is PredictPlanner's.
#pragma once

#include <memory>
#include <vector>

#include "apps/recommend/predict_planner.h"
#include "curtail/rpc/coroutine.h"
#include "recommend.curtail.h"
#include "recommend.pb.h"

namespace curtail::recommend {

// A PredictService predicts over all leaves. Stateless beyond the planner: any number of requests at once.
class PredictService final : public Recommend::Service {
 public:
  explicit PredictService(const PredictPlanner& planner) : planner_(planner) {}

  // Errors: the status of a leaf that failed, with its name (see PredictPlanner::Merge()).
  absl::Status Predict(Context& ctx, const PredictRequest& request, PredictReply* reply) override;

 private:
  const PredictPlanner& planner_;
};

// The same as a coroutine.
class CoroutinePredictService final : public Recommend::CoroutineService {
 public:
  explicit CoroutinePredictService(const PredictPlanner& planner) : planner_(planner) {}

  // Errors: those of PredictService.
  Coroutine Predict(Context& ctx, const PredictRequest& request, PredictReply* reply) override;

 private:
  const PredictPlanner& planner_;
};

// Both, so that one server runs under all models. The planner outlives them.
std::vector<std::unique_ptr<Service>> PredictServices(const PredictPlanner& planner);

}  // namespace curtail::recommend
