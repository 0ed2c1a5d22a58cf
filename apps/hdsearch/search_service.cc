// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/search_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/hdsearch/data/data_spec.h"
#include "apps/hdsearch/index_flags.h"
#include "apps/kit/parallel.h"

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
  std::vector<DeclaredPath> Paths() const override { return {{"Query", {Leaf::kServiceName}}}; }

 private:
  const QueryPlanner& planner_;
};

}  // namespace

std::unique_ptr<Service> MakeSearchService(const QueryPlanner& planner) {
  return std::make_unique<SearchService>(planner);
}

namespace {

struct MidTierOptions {
  std::string data = "fashion-mnist";
  int threads = 0;
  IndexOptions index;
};

MadeService MakeMidTier(const MidTierOptions& options, Env& env) {
  absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  auto index = HashIndex::Build(*data, options.index, apps::Threads(options.threads), env.quiet());
  if (!index.ok()) return index.status();
  const std::vector<Channel*>& leaves = env.Channels("leaf");
  if ((*index)->shape().rows < leaves.size()) {
    return absl::InvalidArgumentError(absl::StrCat(leaves.size(), " leaves, but only ",
                                                   (*index)->shape().rows, " images; use fewer leaves"));
  }
  return MakeSearchService(env.Keep(std::make_unique<QueryPlanner>(*std::move(index), leaves)));
}

}  // namespace

HostedService HostedMidTier() {
  auto options = std::make_shared<MidTierOptions>();
  return {.name = "mid-tier",
          .flags =
              [options](Flags& flags) {
                flags.Add("--data", &options->data, "The corpus; the same for all services");
                flags.Add("--threads", &options->threads, "Threads while loading, 0: one a CPU");
                AddIndexFlags(flags, &options->index);
              },
          .make = [options](Env& env) { return MakeMidTier(*options, env); },
          .memory = [options](Env&) -> absl::StatusOr<uint64_t> {
            const absl::StatusOr<Shape> shape = ShapeOf(options->data);
            if (!shape.ok()) return shape.status();
            return HashIndex::EstimateBytes(shape->rows, options->index);
          }};
}

}  // namespace curtail::hdsearch
