// SPDX-License-Identifier: Apache-2.0
//
// Search: finds products by the words of their names and descriptions, tags and prices, by score. Names and prices are those that
// the catalogue has now: the index follows it.
#include "apps/kit/index/index_service.h"
#include "apps/kit/page.h"
#include "apps/shop/data.h"
#include "goods.curtail.h"

namespace curtail::shop {

struct SearchService final : Search::CoroutineService {
  SearchService(std::unique_ptr<apps::SearchedIndex> i, Env& env)
      : index(std::move(i)), catalogue(env.Stub<Catalogue>("catalogue")) {}

  Coroutine Enter(Context& ctx, const Product& request, apps::Nothing*) override {
    apps::IndexJob job;
    job.set_id(request.id());
    job.set_text(Join(request.name(), "\n", request.description()));
    *job.mutable_tags() = request.tags();
    job.set_number(static_cast<uint64_t>(request.cents()));
    co_return co_await index->Put(ctx, job);
  }

  Coroutine Query(Context& ctx, const ProductSearch& request, ProductList* reply) override {
    const uint32_t limit = apps::LimitOf(request.limit());
    apps::IndexQuery query;
    query.set_text(request.text());
    query.set_tag(request.tag());
    query.set_least(request.least());
    query.set_greatest(request.greatest());
    std::vector<uint64_t> found;
    bool more = false;
    absl::Status status = co_await index->Find(ctx, std::move(query), request.skip(), limit, &found, &more);
    if (!status.ok()) co_return status;
    if (more) reply->set_next(request.skip() + limit);
    if (found.empty()) co_return absl::OkStatus();
    apps::Ids ids;
    ids.mutable_ids()->Assign(found.begin(), found.end());
    auto [products] = co_await WhenAll(ctx, Ask(catalogue, Catalogue::kGet, std::move(ids)));
    if (products.ok()) reply->mutable_products()->Swap(products->mutable_products());
    co_return products.status();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Enter", {}}, {"Query", {apps::SearchIndex::kServiceName, catalogue}}};
  }

  const std::unique_ptr<apps::SearchedIndex> index;
  const Catalogue::Stub catalogue;
};

HostedService HostedSearch() {
  return apps::HostedOnData(kApplication, "search",
                            [](Env& env, const apps::DataOptions& data) -> MadeService {
                              auto index = apps::SearchedIndex::Open(env, data);
                              if (!index.ok()) return index.status();
                              return std::make_unique<SearchService>(*std::move(index), env);
                            });
}

}  // namespace curtail::shop
