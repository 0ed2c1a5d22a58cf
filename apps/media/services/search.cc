// SPDX-License-Identifier: Apache-2.0
//
// Search: finds movies by their words, genres and years, by score.
//
// A movie is queued before it is entered, so that none is left out. A movie that was not entered in the end is left out of what is found.
#include "apps/kit/index/index_service.h"
#include "apps/kit/page.h"
#include "apps/media/data.h"

namespace curtail::media {

struct SearchService final : Search::CoroutineService {
  SearchService(std::unique_ptr<apps::SearchedIndex> i, Env& env)
      : index(std::move(i)), info(env.Stub<MovieInfo>("movie-info")) {}

  Coroutine Enqueue(Context& ctx, const apps::IndexJob& request, apps::Nothing*) override {
    return index->Put(ctx, request);
  }

  Coroutine Query(Context& ctx, const SearchRequest& request, MovieList* reply) override {
    const uint32_t limit = apps::LimitOf(request.limit());
    apps::IndexQuery query;
    query.set_text(request.text());
    query.set_tag(request.genre());
    query.set_least(request.first_year());
    query.set_greatest(request.last_year());
    std::vector<uint64_t> found;
    bool more = false;
    absl::Status status = co_await index->Find(ctx, std::move(query), request.skip(), limit, &found, &more);
    if (!status.ok()) co_return status;
    if (more) reply->set_next(request.skip() + limit);
    if (found.empty()) co_return absl::OkStatus();
    apps::Ids ids;
    ids.mutable_ids()->Assign(found.begin(), found.end());
    auto [movies] = co_await WhenAll(ctx, Ask(info, MovieInfo::kRead, std::move(ids)));
    if (movies.ok()) reply->mutable_movies()->Swap(movies->mutable_movies());
    co_return movies.status();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Enqueue", {}}, {"Query", {apps::SearchIndex::kServiceName, info}}};
  }

  const std::unique_ptr<apps::SearchedIndex> index;
  const MovieInfo::Stub info;
};

HostedService HostedSearch() {
  return apps::HostedOnData(kApplication, "search",
                            [](Env& env, const apps::DataOptions& data) -> MadeService {
                              auto index = apps::SearchedIndex::Open(env, data);
                              if (!index.ok()) return index.status();
                              return std::make_unique<SearchService>(*std::move(index), env);
                            });
}

}  // namespace curtail::media
