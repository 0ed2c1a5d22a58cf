// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/search_service.h"

#include <utility>

#include "curtail/rpc/coroutine.h"
#include "hdsearch.curtail.h"

namespace curtail::hdsearch {
namespace {

class SearchService final : public Search::CoroutineService {
 public:
  explicit SearchService(const QueryPlanner& planner) : planner_(planner) {}

  Coroutine Query(Context& ctx, const QueryRequest& request, QueryReply* reply) override {
    const auto get = planner_.AskForVector(request);
    if (!get.ok()) co_return get.status();
    const auto vectors = co_await fan_out(ctx, get->leaves, Leaf::kGet, get->requests);
    const auto query = planner_.VectorOf(request, *get, vectors);
    if (!query.ok()) co_return query.status();
    auto nearest = planner_.AskForNearest(request, *query);
    const auto replies = co_await fan_out(ctx, nearest.leaves, Leaf::kNearest, std::move(nearest.requests));
    co_return planner_.Merge(request, nearest, replies, reply);
  }

 private:
  const QueryPlanner& planner_;
};

}  // namespace

std::unique_ptr<Service> MakeSearchService(const QueryPlanner& planner) {
  return std::make_unique<SearchService>(planner);
}

}  // namespace curtail::hdsearch
