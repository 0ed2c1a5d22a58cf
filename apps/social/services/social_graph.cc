// SPDX-License-Identifier: Apache-2.0
//
// Social graph: which users follow which. No user follows one that it blocks, or that blocks it. Blocks are another service's,
// so the order of steps keeps that rule, however a Follow and a Block meet:
//
//  F1  A follow is stored.   F2  Then the blocks are looked at.   F3  If F2 saw one, the follow goes again.
//  B1  A block is stored.    B2  Then the follows of the two go.
//
// A Follow that saw no block in F2 was stored before B1, so B2 ends it. If B2 fails, so does the Block, which is to be
// repeated. If F2 gets no answer, the follow stays, and the Follow fails without a known outcome: another Follow may have
// found the follow in F1, and succeed. That follow may outlast a block, as one may whose process dies between F1 and F3: it
// shows nothing while the block lasts.
#include <chrono>

#include "apps/social/common/graph_store.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "users.curtail.h"

namespace curtail::social {

constexpr Nanos kEndTime = std::chrono::seconds(2);

struct SocialGraphService final : SocialGraph::CoroutineService {
  SocialGraphService(std::unique_ptr<GraphStore> s, Env& e) : store(std::move(s)), env(e) {}

  Coroutine Follow(Context& ctx, const Edge& request, Changed* reply) override {
    if (request.from() == request.to()) co_return absl::InvalidArgumentError("a user cannot follow itself");
    apps::Once once(ctx, request.from());
    bool changed = false;
    absl::Status stored = co_await store->Follow(ctx, request, once, &changed);  // F1
    if (!stored.ok()) co_return stored;
    LookRequest look;
    look.set_viewer(request.from());
    look.add_authors(request.to());
    auto [hidden] = co_await WhenAll(ctx, Ask(block_user, BlockUser::kHidden, look));  // F2
    if (!hidden.ok()) co_return hidden.status();
    if (hidden->ids().empty()) {
      reply->set_changed(changed);
      co_return absl::OkStatus();
    }
    // A repetition has stored nothing, but what it repeats may have failed in F2.
    Context last(&ctx, Deadline::In(kEndTime));
    absl::Status ended = co_await store->TakeBack(last, request, once);  // F3
    if (!ended.ok()) co_return ended;
    co_return absl::PermissionDeniedError("one of the two blocks the other");
  }

  Coroutine Unfollow(Context& ctx, const Edge& request, Changed* reply) override {
    apps::Once once(ctx, request.from());
    bool changed = false;
    absl::Status status = co_await store->Unfollow(ctx, request, once, &changed);
    reply->set_changed(changed);
    co_return status;
  }

  Coroutine Block(Context& ctx, const Edge& request, Changed* reply) override {
    apps::Once once(ctx, request.from());
    Context named(&ctx);
    once.HandOn(named);
    auto [blocked] = co_await WhenAll(named, Ask(block_user, BlockUser::kAdd, request));  // B1
    if (!blocked.ok()) co_return blocked.status();
    reply->Swap(&*blocked);
    co_return co_await store->Part(ctx, request, once);  // B2
  }

  Coroutine ForgetUser(Context& ctx, const UserId& request, Nothing*) override {
    return store->Forget(ctx, request.user());
  }

  Coroutine Followers(Context& ctx, const EdgePage& request, Ids* reply) override {
    return store->Followers(ctx, request, reply);
  }
  Coroutine Followees(Context& ctx, const EdgePage& request, Ids* reply) override {
    return store->Followees(ctx, request, reply);
  }

  Coroutine Look(Context& ctx, const LookRequest& request, Ids* reply) override {
    if (absl::Status status = apps::CheckCount(request.authors_size(), apps::kMostIds, "authors");
        !status.ok()) {
      co_return status;
    }
    if (request.viewer() == 0 || request.authors().empty()) co_return absl::OkStatus();
    co_return co_await store->Followed(ctx, request, reply);
  }

  Coroutine CountOf(Context& ctx, const UserId& request, GraphCounts* reply) override {
    return store->Count(ctx, request.user(), reply);
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Follow", {block_user}},
            {"Unfollow", {}},
            {"Block", {block_user}},
            {"ForgetUser", {}},
            {"Followers", {}},
            {"Followees", {}},
            {"Look", {}},
            {"CountOf", {}}};
  }

  const std::unique_ptr<GraphStore> store;
  Env& env;
  const BlockUser::Stub block_user = env.Stub<BlockUser>("block-user");
};

HostedService HostedSocialGraph() {
  return apps::HostedOnData(kApplication, "social-graph",
                            [](Env& env, const apps::DataOptions& data) -> MadeService {
                              auto store = OpenGraph(env, data);
                              if (!store.ok()) return store.status();
                              return std::make_unique<SocialGraphService>(*std::move(store), env);
                            });
}

}  // namespace curtail::social
