// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/query_service.h"

#include <utility>

namespace curtail::setalgebra {

absl::Status QueryService::Query(Context& ctx, const QueryRequest& request, QueryReply* reply) {
  const absl::StatusOr<QueryPlanner::Plan> plan = planner_.Ask(ctx, request);
  if (!plan.ok()) return plan.status();
  const auto replies = ctx.Broadcast(planner_.leaves(), Leaf::kIntersect, plan->request);
  return planner_.Merge(*plan, replies, reply);
}

void ContinuationQueryService::ProcessQuery(Context& ctx, const QueryRequest& request,
                                            TypedResponder<QueryReply> responder) {
  absl::StatusOr<QueryPlanner::Plan> plan = planner_.Ask(ctx, request);
  if (!plan.ok()) return responder.Fail(plan.status());
  IntersectRequest for_all = plan->request;
  InvokeLeafAsync(ctx, planner_.leaves(), Leaf::kIntersect, std::move(for_all),
                  Pending{*std::move(plan), std::move(responder)},
                  [this](Pending pending, const Replies<IntersectReply>& replies) {
                    Finalize(std::move(pending), replies);
                  });
}

void ContinuationQueryService::Finalize(Pending pending, const Replies<IntersectReply>& replies) const {
  QueryReply reply;
  absl::Status merged = planner_.Merge(pending.plan, replies, &reply);
  if (!merged.ok()) return pending.responder.Fail(std::move(merged));
  pending.responder.Finish(reply);
}

std::vector<std::unique_ptr<Service>> QueryServices(const QueryPlanner& planner) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<QueryService>(planner));
  services.push_back(std::make_unique<ContinuationQueryService>(planner));
  return services;
}

}  // namespace curtail::setalgebra
