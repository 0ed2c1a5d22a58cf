// SPDX-License-Identifier: Apache-2.0
//
// Search: asks all parts of the index at once, and merges what they find by score.
//
// Movies reach the index behind the caller's back, many with one commit, through a queue. A movie is queued before it is entered, so
// that none is left out. A movie that was not entered in the end is left out of what is found.
#include "apps/kit/index/index_parts.h"
#include "apps/kit/jobs/job_queue.h"
#include "apps/kit/page.h"
#include "apps/media/data.h"
#include "apps/media/search_bounds.h"

namespace curtail::media {

constexpr uint64_t kMostSkipped = kMostHits - 100;

struct SearchService final : Search::CoroutineService {
  SearchService(std::unique_ptr<apps::JobStore> jobs, Env& e)
      : parts(e.Channels("search-index")),
        env(e),
        queue(std::move(jobs), /*group=*/64, [this](std::span<apps::Job> all) {
          apps::DeliverToParts(parts, SearchIndex::kApply, all,
                               [](const IndexJob& job) { return job.movie(); });
        }) {
    queue.WorkWhileServing(env);
  }

  Coroutine Enqueue(Context& ctx, const IndexJob& request, apps::Nothing*) override {
    co_return co_await queue.Put(ctx, request.SerializeAsString());
  }

  Coroutine Query(Context& ctx, const SearchRequest& request, MovieList* reply) override {
    const uint32_t limit = apps::LimitOf(request.limit());
    if (request.skip() > kMostSkipped)
      co_return absl::InvalidArgumentError(Join("a search shows ", kMostHits, " movies"));
    IndexQuery query;
    query.set_text(request.text());
    query.set_genre(request.genre());
    query.set_first_year(request.first_year());
    query.set_last_year(request.last_year());
    query.set_limit(static_cast<uint32_t>(request.skip()) + limit);
    auto found = co_await broadcast(ctx, parts, SearchIndex::kFind, query);
    std::vector<Hit> hits;
    for (auto& part : found) {
      if (!part.ok()) co_return part.status();
      hits.insert(hits.end(), part->hits().begin(), part->hits().end());
    }
    bool more = false;
    apps::Ids ids;
    const auto id_of = [](const Hit& hit) { return hit.movie(); };
    for (const Hit& hit : apps::BestHits(std::move(hits), request.skip(), limit, id_of, &more))
      ids.add_ids(hit.movie());
    if (more && request.skip() + limit <= kMostSkipped) reply->set_next(request.skip() + limit);
    if (ids.ids().empty()) co_return absl::OkStatus();
    auto [movies] = co_await WhenAll(ctx, Ask(info, MovieInfo::kRead, std::move(ids)));
    if (movies.ok()) reply->mutable_movies()->Swap(movies->mutable_movies());
    co_return movies.status();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Enqueue", {}}, {"Query", {SearchIndex::kServiceName, info}}};
  }

  const std::vector<Channel*> parts;
  Env& env;
  const MovieInfo::Stub info = env.Stub<MovieInfo>("movie-info");
  apps::JobQueue queue;
};

HostedService HostedSearch() {
  auto data = std::make_shared<Data>();
  return {.name = "search",
          .flags = [data](Flags& flags) { apps::AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            auto jobs = apps::OpenJobs(env, *data, "search");
            if (!jobs.ok()) return jobs.status();
            return std::make_unique<SearchService>(*std::move(jobs), env);
          }};
}

}  // namespace curtail::media
