// SPDX-License-Identifier: Apache-2.0
//
// Search: finds posts by their words, by score or by time.
//
// Jobs of a post may overtake each other, so the index may know a deleted post; then it is removed again when a search finds it.
#include "apps/kit/index/index_service.h"
#include "apps/kit/page.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "search.curtail.h"

namespace curtail::social {

struct SearchService final : Search::CoroutineService {
  SearchService(std::unique_ptr<apps::SearchedIndex> i, Env& env)
      : index(std::move(i)), read_post(env.Stub<ReadPost>("read-post")) {}

  Coroutine Enqueue(Context& ctx, const apps::IndexJob& request, Nothing*) override {
    if (request.text().empty() && !request.remove()) co_return absl::OkStatus();
    co_return co_await index->Put(ctx, request);
  }
  Coroutine Look(Context& ctx, const Nothing&, QueueState* reply) override { return index->Look(ctx, reply); }

  Coroutine Query(Context& ctx, const SearchQuery& request, Posts* reply) override {
    const uint32_t limit = apps::LimitOf(request.limit());
    const uint64_t skipped = request.newest() ? 0 : request.from();
    apps::IndexQuery query;
    query.set_text(request.text());
    query.set_newest(request.newest());
    if (request.newest()) query.set_before(request.from());
    ViewRequest view;
    view.set_viewer(request.viewer());
    uint64_t next = 0;
    absl::Status found =
        co_await index->Find(ctx, std::move(query), skipped, limit, view.mutable_ids(), &next);
    if (!found.ok()) co_return found;
    reply->set_next(next);
    auto [seen] = co_await WhenAll(ctx, Ask(read_post, ReadPost::kRead, view));
    if (!seen.ok()) co_return seen.status();
    reply->mutable_posts()->Swap(seen->mutable_posts());
    for (const uint64_t post : seen->gone()) {
      apps::IndexJob stale;
      stale.set_id(post);
      stale.set_remove(true);
      (co_await index->Put(ctx, stale)).IgnoreError();  // the next search finds it again
    }
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Enqueue", {}}, {"Look", {}}, {"Query", {apps::SearchIndex::kServiceName, read_post}}};
  }

  const std::unique_ptr<apps::SearchedIndex> index;
  const ReadPost::Stub read_post;
};

HostedService HostedSearch() { return apps::HostedOnIndex<SearchService>(kApplication); }

}  // namespace curtail::social
