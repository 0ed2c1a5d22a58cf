// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/query_service.h"

#include <string>
#include <vector>

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
  std::vector<DeclaredPath> Paths() const override { return {{"Query", {Leaf::kServiceName}}}; }

 private:
  const QueryPlanner& planner_;
};

}  // namespace

std::unique_ptr<Service> MakeQueryService(const QueryPlanner& planner) {
  return std::make_unique<QueryService>(planner);
}

HostedService HostedMidTier() {
  auto leaf_timeout_ms = std::make_shared<double>(kLeafTimeoutMs);
  return {.name = "mid-tier",
          .flags =
              [leaf_timeout_ms](Flags& flags) {
                flags.Add(
                    "--leaf-timeout", leaf_timeout_ms.get(),
                    "mid-tier: ms after which a leaf counts as failed, 0: when the request's time is up",
                    {0, 3.6e6});
              },
          .make = [leaf_timeout_ms](Env& env) -> MadeService {
            const QueryPlannerOptions options{.leaf_timeout = FromMillis(*leaf_timeout_ms)};
            return MakeQueryService(env.Keep(std::make_unique<QueryPlanner>(env.Channels("leaf"), options)));
          },
          .memory = [](Env& env) -> absl::StatusOr<uint64_t> {
            return (uint64_t{12} << 20) + env.Count("leaf") * (uint64_t{128} << 10);
          }};
}

}  // namespace curtail::setalgebra
