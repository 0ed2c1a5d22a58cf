// SPDX-License-Identifier: Apache-2.0
//
// Home timeline: posts of those whom a user follows, and posts that mention it.
//
// An entry says that a post was meant for a user. Whether it may be seen is found when it is read: a user who has
// unfollowed or blocked an author, or was blocked, sees no more of it at once. Entries of deleted posts that came late
// are removed when a reader meets them.
#include <unordered_set>

#include "apps/social/common/hosted_timeline.h"
#include "apps/social/common/page.h"
#include "apps/social/common/timeline_store.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

struct HomeTimelineService final : HomeTimeline::CoroutineService {
  HomeTimelineService(std::unique_ptr<TimelineStore> store, Env& e) : timelines(std::move(store)), env(e) {}

  Coroutine Add(Context& ctx, const HomeEntries& request, Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.users_size(), apps::kMostIds, "users"); !status.ok())
      co_return status;
    co_return co_await timelines->Add(ctx, EntriesOf(request));
  }

  Coroutine Remove(Context& ctx, const HomeEntries& request, Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.users_size(), apps::kMostIds, "users"); !status.ok())
      co_return status;
    co_return co_await timelines->Remove(ctx, EntriesOf(request));
  }

  Coroutine ForgetUser(Context& ctx, const UserId& request, Nothing*) override {
    return timelines->Forget(ctx, request.user());
  }

  static std::vector<TimelineStore::Entry> EntriesOf(const HomeEntries& request) {
    std::vector<TimelineStore::Entry> entries;
    for (const uint64_t user : request.users()) {
      entries.push_back({.user = user,
                         .post = request.post(),
                         .author = request.author(),
                         .mentioned = request.mentioned()});
    }
    return entries;
  }

  Coroutine Read(Context& ctx, const TimelinePage& request, Posts* reply) override {
    if (request.viewer() != request.user())
      co_return absl::PermissionDeniedError("the timeline is another's");
    std::vector<TimelineStore::Entry> entries;
    absl::Status read = co_await timelines->Read(ctx, request, &entries);
    if (!read.ok() || entries.empty()) co_return read;
    auto both = co_await WhenAllOk(ctx, Ask(read_post, ReadPost::kRead, ViewOf(request.viewer(), entries)),
                                   Ask(graph, SocialGraph::kLook, AuthorsOf(request.viewer(), entries)));
    if (!both.ok()) co_return both.status();
    auto& [seen, followed] = *both;
    PutWanted(entries, followed, &seen, reply);
    reply->set_next(NextOf(entries, request));
    if (seen.gone().empty()) co_return absl::OkStatus();
    const std::unordered_set<uint64_t> gone(seen.gone().begin(), seen.gone().end());
    std::erase_if(entries, [&](const TimelineStore::Entry& one) { return !gone.contains(one.post); });
    (co_await timelines->Remove(ctx, std::move(entries))).IgnoreError();  // the next reader meets them again
    co_return absl::OkStatus();
  }

  static LookRequest AuthorsOf(uint64_t viewer, const std::vector<TimelineStore::Entry>& entries) {
    LookRequest look;
    look.set_viewer(viewer);
    std::unordered_set<uint64_t> authors;
    for (const auto& entry : entries) {
      if (authors.insert(entry.author).second) look.add_authors(entry.author);
    }
    return look;
  }

  // Moves the posts that the viewer wants to the reply. Both lists have the same order.
  static void PutWanted(const std::vector<TimelineStore::Entry>& entries, const Ids& followees, View* seen,
                        Posts* reply) {
    const std::unordered_set<uint64_t> followed(followees.ids().begin(), followees.ids().end());
    int next = 0;
    for (const auto& entry : entries) {
      if (next == seen->posts_size()) return;
      if (seen->posts(next).id() != entry.post) continue;
      Post* const post = seen->mutable_posts(next++);
      if (entry.mentioned || followed.contains(entry.author)) reply->add_posts()->Swap(post);
    }
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Add", {}}, {"Remove", {}}, {"ForgetUser", {}}, {"Read", {read_post, graph}}};
  }

  const std::unique_ptr<TimelineStore> timelines;
  Env& env;
  const ReadPost::Stub read_post = env.Stub<ReadPost>("read-post");
  const SocialGraph::Stub graph = env.Stub<SocialGraph>("social-graph");
};

HostedService HostedHomeTimeline() {
  return HostedTimeline<HomeTimelineService>("home-timeline",
                                             /*trimmed=*/true);
}

}  // namespace curtail::social
