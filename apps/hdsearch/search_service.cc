// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/search_service.h"

#include <utility>

namespace curtail::hdsearch {

absl::Status SearchService::Query(Context& ctx, const QueryRequest& request, QueryReply* reply) {
  const auto get = planner_.AskForVector(request);
  if (!get.ok()) return get.status();
  const auto query = planner_.VectorOf(request, *get, ctx.FanOut(get->leaves, Leaf::kGet, get->requests));
  if (!query.ok()) return query.status();
  const auto nearest = planner_.AskForNearest(request, *query);
  return planner_.Merge(request, nearest, ctx.FanOut(nearest.leaves, Leaf::kNearest, nearest.requests),
                        reply);
}

Coroutine CoroutineSearchService::Query(Context& ctx, const QueryRequest& request, QueryReply* reply) {
  const auto get = planner_.AskForVector(request);
  if (!get.ok()) co_return get.status();
  const auto vectors = co_await fan_out(ctx, get->leaves, Leaf::kGet, get->requests);
  const auto query = planner_.VectorOf(request, *get, vectors);
  if (!query.ok()) co_return query.status();
  auto nearest = planner_.AskForNearest(request, *query);
  const auto replies = co_await fan_out(ctx, nearest.leaves, Leaf::kNearest, std::move(nearest.requests));
  co_return planner_.Merge(request, nearest, replies, reply);
}

std::vector<std::unique_ptr<Service>> SearchServices(const QueryPlanner& planner) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<SearchService>(planner));
  services.push_back(std::make_unique<CoroutineSearchService>(planner));
  return services;
}

}  // namespace curtail::hdsearch
