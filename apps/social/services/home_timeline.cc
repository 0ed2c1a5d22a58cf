// SPDX-License-Identifier: Apache-2.0
//
// Home timeline: posts of those whom a user follows, and posts that mention it.
//
// An entry says that a post was meant for a user. Whether it may be seen is found when it is read: a user who has
// unfollowed or blocked an author, or was blocked, sees no more of it at once. Entries of deleted posts that came late
// are removed when a reader meets them.
#include <algorithm>
#include <unordered_set>

#include "apps/social/hosted_timeline.h"
#include "apps/social/page.h"
#include "apps/social/timeline_store.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

struct HomeTimelineService final : HomeTimeline::CoroutineService {
  HomeTimelineService(SqlDatabase& d, uint64_t length, Env& env)
      : db(d),
        timelines(length),
        storage(env.Stub<PostStorage>("post-storage")),
        graph(env.Stub<SocialGraph>("social-graph")) {}

  Coroutine Add(Context& ctx, const HomeEntries& request, Nothing*) override {
    if (absl::Status status = CheckCount(request.users_size(), kMostIds, "users"); !status.ok())
      co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const uint64_t user : request.users()) {
        status.Update(timelines.Add(s, {.user = user,
                                        .post = request.post(),
                                        .author = request.author(),
                                        .mentioned = request.mentioned()}));
      }
      return status;
    });
  }

  Coroutine Remove(Context& ctx, const HomeEntries& request, Nothing*) override {
    if (absl::Status status = CheckCount(request.users_size(), kMostIds, "users"); !status.ok())
      co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const uint64_t user : request.users()) {
        status.Update(timelines.Remove(s, user, request.post()));
      }
      return status;
    });
  }

  Coroutine Read(Context& ctx, const TimelinePage& request, Posts* reply) override {
    if (request.viewer() != request.user())
      co_return absl::PermissionDeniedError("the timeline is another's");
    std::vector<TimelineStore::Entry> entries;
    absl::Status read = co_await db.Reading(
        ctx.deadline(), [&](SqlSession& s) { return timelines.Read(s, request, &entries); });
    if (!read.ok() || entries.empty()) co_return read;
    auto both = co_await WhenAllOk(ctx, Ask(storage, PostStorage::kRead, IdsOf(entries)),
                                   Ask(graph, SocialGraph::kLook, AuthorsOf(request.viewer(), entries)));
    if (!both.ok()) co_return both.status();
    auto& [posts, look] = *both;
    const std::vector<uint64_t> stale = Merge(entries, look, &posts, reply);
    reply->set_next(NextOf(entries, request));
    if (stale.empty()) co_return absl::OkStatus();
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const uint64_t post : stale) status.Update(timelines.Remove(s, request.user(), post));
      return status;
    });
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

  // Moves the posts that the viewer may see to the reply, and returns the ids of those that are gone. Both lists have
  // the same order.
  static std::vector<uint64_t> Merge(const std::vector<TimelineStore::Entry>& entries, const LookReply& look,
                                     Posts* posts, Posts* reply) {
    const std::unordered_set<uint64_t> followed(look.followed().begin(), look.followed().end());
    const std::unordered_set<uint64_t> hidden(look.hidden().begin(), look.hidden().end());
    std::vector<uint64_t> stale;
    int next = 0;
    for (const auto& entry : entries) {
      if (next == posts->posts_size() || posts->posts(next).id() != entry.post) {
        stale.push_back(entry.post);
        continue;
      }
      Post* const post = posts->mutable_posts(next++);
      const bool wanted = entry.mentioned || followed.contains(entry.author);
      if (wanted && !hidden.contains(entry.author)) reply->add_posts()->Swap(post);
    }
    return stale;
  }

  std::vector<DeclaredPath> Paths() const override {
    const std::vector<std::string> read = {std::string(PostStorage::kServiceName),
                                           std::string(SocialGraph::kServiceName)};
    return {{"Add", {}}, {"Remove", {}}, {"Read", read}};
  }

  SqlDatabase& db;
  const TimelineStore timelines;
  const PostStorage::Stub storage;
  const SocialGraph::Stub graph;
};

HostedService HostedHomeTimeline() { return HostedTimeline<HomeTimelineService>("home-timeline"); }

}  // namespace curtail::social
