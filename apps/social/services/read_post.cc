// SPDX-License-Identifier: Apache-2.0
//
// Read post: posts as one user sees them. Every way to read posts goes through here, so that what a block hides is
// hidden on all of them.
//
// A post is hidden if its author, or that of what it repeats, blocks the viewer or is blocked by it. A repost without a
// text is gone when its original is. Counts are no reason to show nothing: they have a time of their own, and a post is
// shown without those that do not come.
#include <unordered_map>
#include <unordered_set>

#include "apps/social/common/page.h"
#include "apps/social/common/posts.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "reactions.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

struct ReadPostService final : ReadPost::CoroutineService {
  explicit ReadPostService(Env& e) : env(e) {}

  Coroutine Read(Context& ctx, const ViewRequest& request, View* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), kMostViewed, "ids"); !status.ok())
      co_return status;
    if (request.ids().empty()) co_return absl::OkStatus();
    Ids ids;
    *ids.mutable_ids() = request.ids();
    const Nanos optional = apps::OptionalTime(ctx.deadline());
    auto [posts, likes, refs] = co_await WhenAll(
        ctx, Ask(storage, PostStorage::kRead, ids), Ask(favorite, Favorite::kCount, ids).Within(optional),
        Ask(repost_reply, RepostReply::kCount, ids).Within(optional));
    if (!posts.ok()) co_return posts.status();
    auto seen = co_await WhenAllOk(ctx, Ask(storage, PostStorage::kRead, OriginalsOf(*posts)),
                                   Ask(block_user, BlockUser::kHidden, AuthorsOf(request.viewer(), *posts)));
    if (!seen.ok()) co_return seen.status();
    auto& [originals, not_these] = *seen;
    std::unordered_map<uint64_t, Post*> by_id;
    for (Post& post : *originals.mutable_posts()) by_id[post.id()] = &post;
    const std::unordered_set<uint64_t> hidden(not_these.ids().begin(), not_these.ids().end());
    int next = 0;
    for (int i = 0; i < ids.ids_size(); ++i) {
      if (next == posts->posts_size() || posts->posts(next).id() != ids.ids(i)) {
        reply->add_gone(ids.ids(i));
        continue;
      }
      Post* const post = posts->mutable_posts(next++);
      if (!PutOriginal(by_id, post)) {
        reply->add_gone(post->id());
        continue;
      }
      if (hidden.contains(post->author().id()) || hidden.contains(post->original().author().id())) continue;
      if (likes.ok()) {
        post->set_favorites(likes->counts(i));
      } else {
        post->add_missing("favorites");
      }
      if (refs.ok()) {
        post->set_replies(refs->replies(i));
        post->set_reposts(refs->reposts(i));
      } else {
        post->add_missing("replies");
        post->add_missing("reposts");
      }
      reply->add_posts()->Swap(post);
    }
    reply->mutable_hidden()->Swap(not_these.mutable_ids());
    co_return absl::OkStatus();
  }

  static Ids OriginalsOf(const Posts& posts) {
    Ids ids;
    for (const Post& post : posts.posts()) {
      if (post.has_original()) ids.add_ids(post.original().id());
    }
    return ids;
  }

  static LookRequest AuthorsOf(uint64_t viewer, const Posts& posts) {
    LookRequest look;
    std::unordered_set<uint64_t> authors;
    const auto add = [&](const Post& post) {
      if (authors.insert(post.author().id()).second) look.add_authors(post.author().id());
    };
    look.set_viewer(viewer);
    for (const Post& post : posts.posts()) {
      add(post);
      if (post.has_original()) add(post.original());
    }
    return look;
  }

  // Puts what a repost repeats in the place of the reference to it. False: the post is nothing without it.
  static bool PutOriginal(const std::unordered_map<uint64_t, Post*>& originals, Post* post) {
    if (!post->has_original()) return true;
    const auto found = originals.find(post->original().id());
    if (found == originals.end()) {
      if (IsBareRepost(*post)) return false;
      post->clear_original();
      return true;
    }
    *post->mutable_original() = *found->second;
    post->mutable_original()->clear_original();
    return true;
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Read", {storage, block_user, favorite, repost_reply}}};
  }

  Env& env;
  const PostStorage::Stub storage = env.Stub<PostStorage>("post-storage");
  const BlockUser::Stub block_user = env.Stub<BlockUser>("block-user");
  const Favorite::Stub favorite = env.Stub<Favorite>("favorite");
  const RepostReply::Stub repost_reply = env.Stub<RepostReply>("repost-reply");
};

HostedService HostedReadPost() {
  return {.name = "read-post", .make = [](Env& env) { return std::make_unique<ReadPostService>(env); }};
}

}  // namespace curtail::social
