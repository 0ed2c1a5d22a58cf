// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/predict_service.h"

namespace curtail::recommend {

absl::Status PredictService::Predict(Context& ctx, const PredictRequest& request, PredictReply* reply) {
  ctx.ShortenDeadline(planner_.WaitUntil(request, ctx.deadline()));
  const auto replies = ctx.Broadcast(planner_.leaves(), Leaf::kPredict, planner_.Ask(request));
  return planner_.Merge(request, replies, reply);
}

Coroutine CoroutinePredictService::Predict(Context& ctx, const PredictRequest& request, PredictReply* reply) {
  ctx.ShortenDeadline(planner_.WaitUntil(request, ctx.deadline()));
  const LeafRequest ask = planner_.Ask(request);
  const auto replies = co_await broadcast(ctx, planner_.leaves(), Leaf::kPredict, ask);
  co_return planner_.Merge(request, replies, reply);
}

std::vector<std::unique_ptr<Service>> PredictServices(const PredictPlanner& planner) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<PredictService>(planner));
  services.push_back(std::make_unique<CoroutinePredictService>(planner));
  return services;
}

}  // namespace curtail::recommend
