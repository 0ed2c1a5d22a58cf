// SPDX-License-Identifier: Apache-2.0
//
// query_service.h - the mid-tier: asks all leaves and puts their answers one behind the other.
//
// Two handlers of one service, which differ only in how they wait: straight-line for the synchronous and
// fiber models, continuations for the asynchronous ones, in the words of muTune (section 3): ProcessRequest,
// InvokeLeafAsync, FinalizeResponse. What they do is QueryPlanner's.
#pragma once

#include <memory>
#include <vector>

#include "apps/setalgebra/query_planner.h"
#include "curtail/rpc/coroutine.h"
#include "setalgebra.curtail.h"
#include "setalgebra.pb.h"

namespace curtail::setalgebra {

// A QueryService answers queries over shards. Stateless beyond the planner: any number of requests at once.
class QueryService final : public SetAlgebra::Service {
 public:
  explicit QueryService(const QueryPlanner& planner) : planner_(planner) {}

  // Errors: those of QueryPlanner.
  absl::Status Query(Context& ctx, const QueryRequest& request, QueryReply* reply) override;

 private:
  const QueryPlanner& planner_;
};

// The same as continuations.
class ContinuationQueryService final : public SetAlgebra::ContinuationService {
 public:
  explicit ContinuationQueryService(const QueryPlanner& planner) : planner_(planner) {}

  // Errors: those of QueryPlanner.
  void ProcessQuery(Context& ctx, const QueryRequest& request, TypedResponder<QueryReply> responder) override;

 private:
  // What a query leaves behind for the thread that takes its leaves' last answer.
  struct Pending {
    QueryPlanner::Plan plan;
    TypedResponder<QueryReply> responder;
  };

  // FinalizeResponse.
  void Finalize(Pending pending, const Replies<IntersectReply>& replies) const;

  const QueryPlanner& planner_;
};

// Both, so that one server runs under all models. The planner outlives them.
std::vector<std::unique_ptr<Service>> QueryServices(const QueryPlanner& planner);

}  // namespace curtail::setalgebra
