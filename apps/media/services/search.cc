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
    apps::Ids ids;
    uint64_t next = 0;
    absl::Status status =
        co_await index->Find(ctx, std::move(query), request.skip(), limit, ids.mutable_ids(), &next);
    if (!status.ok()) co_return status;
    reply->set_next(next);
    if (ids.ids().empty()) co_return absl::OkStatus();
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

HostedService HostedSearch() { return apps::HostedOnIndex<SearchService>(kApplication); }

}  // namespace curtail::media
