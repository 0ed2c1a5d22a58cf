// SPDX-License-Identifier: Apache-2.0
//
// User timeline: what each user wrote, the newest so many.
#include "apps/social/hosted_timeline.h"
#include "apps/social/page.h"
#include "apps/social/timeline_store.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

struct UserTimelineService final : UserTimeline::CoroutineService {
  UserTimelineService(SqlDatabase& d, uint64_t length, Env& env)
      : db(d),
        timelines(length),
        storage(env.Stub<PostStorage>("post-storage")),
        graph(env.Stub<SocialGraph>("social-graph")) {}

  Coroutine Append(Context& ctx, const TimelineEntry& request, Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return timelines.Add(s, {.user = request.user(), .post = request.post(), .author = request.user()});
    });
  }

  Coroutine Remove(Context& ctx, const TimelineEntry& request, Nothing*) override {
    co_return co_await db.Writing(
        ctx.deadline(), [&](SqlSession& s) { return timelines.Remove(s, request.user(), request.post()); });
  }

  Coroutine Read(Context& ctx, const TimelinePage& request, Posts* reply) override {
    std::vector<TimelineStore::Entry> entries;
    absl::Status read = co_await db.Reading(
        ctx.deadline(), [&](SqlSession& s) { return timelines.Read(s, request, &entries); });
    if (!read.ok()) co_return read;
    LookRequest look;
    look.set_viewer(request.viewer());
    if (request.viewer() != request.user()) look.add_authors(request.user());
    auto both = co_await WhenAllOk(ctx, Ask(storage, PostStorage::kRead, IdsOf(entries)),
                                   Ask(graph, SocialGraph::kLook, look));
    if (!both.ok()) co_return both.status();
    auto& [posts, seen] = *both;
    if (!seen.hidden().empty()) co_return absl::OkStatus();
    reply->mutable_posts()->Swap(posts.mutable_posts());
    reply->set_next(NextOf(entries, request));
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    const std::vector<std::string> read = {std::string(PostStorage::kServiceName),
                                           std::string(SocialGraph::kServiceName)};
    return {{"Append", {}}, {"Remove", {}}, {"Read", read}};
  }

  SqlDatabase& db;
  const TimelineStore timelines;
  const PostStorage::Stub storage;
  const SocialGraph::Stub graph;
};

HostedService HostedUserTimeline() { return HostedTimeline<UserTimelineService>("user-timeline"); }

}  // namespace curtail::social
