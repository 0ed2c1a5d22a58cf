// SPDX-License-Identifier: Apache-2.0
//
// Search: asks all parts of the index at once, and merges what they find by score or by time.
//
// Posts reach the index behind the caller's back, many with one commit, through a queue. Jobs of a post may
// overtake each other, so the index may know a deleted post; then it is removed again when a search finds it.
#include "apps/kit/index/index_parts.h"
#include "apps/kit/jobs/job_queue.h"
#include "apps/social/data.h"
#include "apps/social/page.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "search.curtail.h"

namespace curtail::social {

constexpr uint64_t kMostSkipped = kMostHits - 100;

struct SearchService final : Search::CoroutineService {
  SearchService(std::unique_ptr<apps::JobStore> jobs, Env& e)
      : parts(e.Channels("search-index")),
        env(e),
        queue(std::move(jobs), /*group=*/64, [this](std::span<apps::Job> all) {
          apps::DeliverToParts(parts, SearchIndex::kApply, all,
                               [](const IndexJob& job) { return job.post(); });
        }) {
    queue.WorkWhileServing(env);
  }

  Coroutine Enqueue(Context& ctx, const IndexJob& request, Nothing*) override {
    if (request.text().empty() && !request.remove()) co_return absl::OkStatus();
    co_return co_await queue.Put(ctx, request.SerializeAsString());
  }
  Coroutine Look(Context& ctx, const Nothing&, QueueState* reply) override { return queue.Look(ctx, reply); }

  Coroutine Query(Context& ctx, const SearchQuery& request, Posts* reply) override {
    const uint32_t limit = apps::LimitOf(request.limit());
    const uint64_t skipped = request.newest() ? 0 : request.from();
    if (skipped > kMostSkipped) {
      co_return absl::InvalidArgumentError(Join("a search by score shows ", kMostHits, " posts"));
    }
    IndexQuery query;
    query.set_text(request.text());
    query.set_newest(request.newest());
    if (request.newest()) query.set_before(request.from());
    query.set_limit(static_cast<uint32_t>(skipped) + limit);
    auto found = co_await broadcast(ctx, parts, SearchIndex::kFind, query);
    std::vector<Hit> hits;
    for (auto& part : found) {
      if (!part.ok()) co_return part.status();
      hits.insert(hits.end(), part->hits().begin(), part->hits().end());
    }
    bool more = false;
    hits = apps::BestHits(std::move(hits), skipped, limit, [](const Hit& hit) { return hit.post(); }, &more);
    ViewRequest view;
    view.set_viewer(request.viewer());
    for (const Hit& hit : hits) view.add_ids(hit.post());
    auto [seen] = co_await WhenAll(ctx, Ask(read_post, ReadPost::kRead, view));
    if (!seen.ok()) co_return seen.status();
    reply->mutable_posts()->Swap(seen->mutable_posts());
    if (more && request.newest()) reply->set_next(hits.back().post());
    if (more && !request.newest() && skipped + limit <= kMostSkipped) reply->set_next(skipped + limit);
    for (const uint64_t post : seen->gone()) {
      IndexJob stale;
      stale.set_post(post);
      stale.set_remove(true);
      (co_await queue.Put(ctx, stale.SerializeAsString())).IgnoreError();  // the next search finds it again
    }
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Enqueue", {}}, {"Look", {}}, {"Query", {SearchIndex::kServiceName, read_post}}};
  }

  const std::vector<Channel*> parts;
  Env& env;
  const ReadPost::Stub read_post = env.Stub<ReadPost>("read-post");
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

}  // namespace curtail::social
