// SPDX-License-Identifier: Apache-2.0
//
// search_service.h - the mid-tier: proposes candidates, asks the leaves that hold them, merges the answers.
//
// Two handlers of one service, which differ only in how they wait: straight-line for the synchronous and fiber
// models, a coroutine for the asynchronous ones. What they do is QueryPlanner's.
#pragma once

#include <memory>
#include <vector>

#include "apps/hdsearch/query_planner.h"
#include "curtail/rpc/coroutine.h"
#include "hdsearch.curtail.h"
#include "hdsearch.pb.h"

namespace curtail::hdsearch {

// A SearchService answers queries over shards. Stateless beyond the planner: any number of requests at once.
class SearchService final : public Search::Service {
 public:
  explicit SearchService(const QueryPlanner& planner) : planner_(planner) {}

  // Errors: INVALID_ARGUMENT (no query, wrong dimension, a value not finite, k not from 1 to the number of
  // images, no such image), or the status of a leaf that failed, with its name.
  absl::Status Query(Context& ctx, const QueryRequest& request, QueryReply* reply) override;

 private:
  const QueryPlanner& planner_;
};

// The same as a coroutine.
class CoroutineSearchService final : public Search::CoroutineService {
 public:
  explicit CoroutineSearchService(const QueryPlanner& planner) : planner_(planner) {}

  // Errors: those of SearchService.
  Coroutine Query(Context& ctx, const QueryRequest& request, QueryReply* reply) override;

 private:
  const QueryPlanner& planner_;
};

// Both, so that one server runs under all models. The planner outlives them.
std::vector<std::unique_ptr<Service>> SearchServices(const QueryPlanner& planner);

}  // namespace curtail::hdsearch
