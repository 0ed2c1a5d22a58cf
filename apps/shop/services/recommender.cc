// SPDX-License-Identifier: Apache-2.0
//
// Recommender: products that suit others, by the model that `shop train` has written.
#include <algorithm>
#include <string>
#include <vector>

#include "apps/kit/data/folder.h"
#include "apps/kit/data/model_file.h"
#include "apps/kit/page.h"
#include "apps/kit/taste/taste.h"
#include "apps/shop/common/train.h"
#include "apps/shop/data.h"
#include "goods.curtail.h"

namespace curtail::shop {

struct RecommenderService final : Recommender::CoroutineService {
  RecommenderService(std::string path, Env& env)
      : file(std::move(path)), catalogue(env.Stub<Catalogue>("catalogue")) {}

  // Of a basket without a product that the model has, these are the products that most customers buy.
  Coroutine For(Context& ctx, const RecommendationQuery& request, ProductList* reply) override {
    co_return co_await Recommend(ctx, request, /*or_popular=*/true, reply);
  }
  Coroutine Similar(Context& ctx, const RecommendationQuery& request, ProductList* reply) override {
    co_return co_await Recommend(ctx, request, /*or_popular=*/false, reply);
  }

  Coroutine Recommend(Context& ctx, const RecommendationQuery& request, bool or_popular, ProductList* reply) {
    absl::Status checked = apps::CheckCount(request.products_size(), kMostLines, "products");
    if (!checked.ok()) co_return checked;
    const auto model = file.Get();
    if (!model.ok()) co_return model.status();
    const std::vector<uint64_t> given(request.products().begin(), request.products().end());
    const uint32_t limit = apps::LimitOf(request.limit());
    std::vector<uint64_t> best = SimilarTo(**model, given, limit);
    if (best.empty() && or_popular) {
      constexpr uint64_t kNobody = 0;
      best = BestFor(**model, kNobody, given.size() + limit);
      std::erase_if(best, [&](uint64_t one) { return std::ranges::find(given, one) != given.end(); });
      best.resize(std::min<size_t>(best.size(), limit));
    }
    if (best.empty()) co_return absl::OkStatus();
    apps::Ids ids;
    ids.mutable_ids()->Assign(best.begin(), best.end());
    auto [found] = co_await WhenAll(ctx, Ask(catalogue, Catalogue::kGet, std::move(ids)));
    if (found.ok()) reply->mutable_products()->Swap(found->mutable_products());
    co_return found.status();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"For", {catalogue}}, {"Similar", {catalogue}}};
  }

  apps::ModelFile<apps::TasteModel> file;
  const Catalogue::Stub catalogue;
};

HostedService HostedRecommender() {
  return apps::HostedOnData(
      kApplication, "recommender", [](Env& env, const apps::DataOptions& data) -> MadeService {
        const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data.folder);
        if (!folder.ok()) return folder.status();
        return std::make_unique<RecommenderService>(Join(*folder, "/", kTasteModelFile), env);
      });
}

}  // namespace curtail::shop
