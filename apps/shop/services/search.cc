// SPDX-License-Identifier: Apache-2.0
//
// Search: finds products by the words of their names and descriptions, tags and prices, by score. The catalogue
// gives names and prices, as the index is behind it.
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
    apps::Ids ids;
    uint64_t next = 0;
    absl::Status status =
        co_await index->Find(ctx, std::move(query), request.skip(), limit, ids.mutable_ids(), &next);
    if (!status.ok()) co_return status;
    reply->set_next(static_cast<uint32_t>(next));
    if (ids.ids().empty()) co_return absl::OkStatus();
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

HostedService HostedSearch() { return apps::HostedOnIndex<SearchService>(kApplication); }

}  // namespace curtail::shop
