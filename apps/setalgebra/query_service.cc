// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/query_service.h"

#include "curtail/rpc/coroutine.h"
#include "setalgebra.curtail.h"

namespace curtail::setalgebra {
namespace {

class QueryService final : public SetAlgebra::CoroutineService {
 public:
  explicit QueryService(const QueryPlanner& planner) : planner_(planner) {}

  Coroutine Query(Context& ctx, const QueryRequest& request, QueryReply* reply) override {
    const absl::StatusOr<QueryPlanner::Plan> plan = planner_.Ask(ctx, request);
    if (!plan.ok()) co_return plan.status();
    const auto replies = co_await broadcast(ctx, planner_.leaves(), Leaf::kIntersect, plan->request);
    co_return planner_.Merge(*plan, replies, reply);
  }

 private:
  const QueryPlanner& planner_;
};

}  // namespace

std::unique_ptr<Service> MakeQueryService(const QueryPlanner& planner) {
  return std::make_unique<QueryService>(planner);
}

}  // namespace curtail::setalgebra
