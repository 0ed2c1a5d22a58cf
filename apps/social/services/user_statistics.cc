// SPDX-License-Identifier: Apache-2.0
//
// User statistics: asks those who keep something of a user how much it is, all at once.
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "messages.curtail.h"
#include "reactions.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

struct UserStatisticsService final : UserStatistics::CoroutineService {
  explicit UserStatisticsService(Env& e) : env(e) {}

  Coroutine Of(Context& ctx, const StatisticsQuery& request, Statistics* reply) override {
    UserId of;
    of.set_user(request.user());
    LookRequest look;
    look.set_viewer(request.viewer());
    look.add_authors(request.user());
    auto all = co_await WhenAllOk(
        ctx, Ask(storage, PostStorage::kCountOf, of), Ask(graph, SocialGraph::kCountOf, of),
        Ask(favorite, Favorite::kReceived, of), Ask(block_user, BlockUser::kHidden, look));
    if (!all.ok()) co_return all.status();
    const auto& [posts, people, likes, hidden] = *all;
    if (!hidden.ids().empty()) co_return absl::OkStatus();  // as an empty timeline
    reply->set_posts(posts.count());
    reply->set_followers(people.followers());
    reply->set_following(people.following());
    reply->set_likes_received(likes.count());
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Of", {storage, graph, favorite, block_user}}};
  }

  Env& env;
  const PostStorage::Stub storage = env.Stub<PostStorage>("post-storage");
  const SocialGraph::Stub graph = env.Stub<SocialGraph>("social-graph");
  const BlockUser::Stub block_user = env.Stub<BlockUser>("block-user");
  const Favorite::Stub favorite = env.Stub<Favorite>("favorite");
};

HostedService HostedUserStatistics() {
  return {.name = "user-statistics",
          .make = [](Env& env) { return std::make_unique<UserStatisticsService>(env); }};
}

}  // namespace curtail::social
