// SPDX-License-Identifier: Apache-2.0
//
// User timeline: what each user wrote, the newest so many.
#include <algorithm>

#include "apps/social/hosted_timeline.h"
#include "apps/social/page.h"
#include "apps/social/timeline_store.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "timelines.curtail.h"

namespace curtail::social {

struct UserTimelineService final : UserTimeline::CoroutineService {
  UserTimelineService(SqlDatabase& d, uint64_t length, Env& env)
      : db(d), timelines(length), read_post(env.Stub<ReadPost>("read-post")) {}

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
    if (!read.ok() || entries.empty()) co_return read;
    auto [seen] = co_await WhenAll(ctx, Ask(read_post, ReadPost::kRead, ViewOf(request.viewer(), entries)));
    if (!seen.ok()) co_return seen.status();
    if (std::ranges::find(seen->hidden(), request.user()) != seen->hidden().end()) co_return absl::OkStatus();
    reply->mutable_posts()->Swap(seen->mutable_posts());
    reply->set_next(NextOf(entries, request));
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Append", {}}, {"Remove", {}}, {"Read", {std::string(ReadPost::kServiceName)}}};
  }

  SqlDatabase& db;
  const TimelineStore timelines;
  const ReadPost::Stub read_post;
};

HostedService HostedUserTimeline() { return HostedTimeline<UserTimelineService>("user-timeline"); }

}  // namespace curtail::social
