// SPDX-License-Identifier: Apache-2.0
//
// User timeline: what each user wrote.
#include <algorithm>

#include "apps/social/common/hosted_timeline.h"
#include "apps/social/common/page.h"
#include "apps/social/common/timeline_store.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "timelines.curtail.h"

namespace curtail::social {

struct UserTimelineService final : UserTimeline::CoroutineService {
  UserTimelineService(std::unique_ptr<TimelineStore> store, Env& e) : timelines(std::move(store)), env(e) {}

  Coroutine Append(Context& ctx, const TimelineEntry& request, Nothing*) override {
    return timelines->Add(ctx, {{.user = request.user(), .post = request.post(), .author = request.user()}});
  }

  Coroutine Remove(Context& ctx, const TimelineEntry& request, Nothing*) override {
    return timelines->Remove(ctx,
                             {{.user = request.user(), .post = request.post(), .author = request.user()}});
  }

  Coroutine Read(Context& ctx, const TimelinePage& request, Posts* reply) override {
    std::vector<TimelineStore::Entry> entries;
    absl::Status read = co_await timelines->Read(ctx, request, &entries);
    if (!read.ok() || entries.empty()) co_return read;
    auto [seen] = co_await WhenAll(ctx, Ask(read_post, ReadPost::kRead, ViewOf(request.viewer(), entries)));
    if (!seen.ok()) co_return seen.status();
    if (std::ranges::find(seen->hidden(), request.user()) != seen->hidden().end()) co_return absl::OkStatus();
    for (Post& post : *seen->mutable_posts()) {
      if (post.author().id() == request.user()) reply->add_posts()->Swap(&post);
    }
    reply->set_next(NextOf(entries, request));
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Append", {}}, {"Remove", {}}, {"Read", {read_post}}};
  }

  const std::unique_ptr<TimelineStore> timelines;
  Env& env;
  const ReadPost::Stub read_post = env.Stub<ReadPost>("read-post");
};

HostedService HostedUserTimeline() {
  return HostedTimeline<UserTimelineService>("user-timeline", /*trimmed=*/false);
}

}  // namespace curtail::social
