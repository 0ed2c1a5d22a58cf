// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The steps of a departure (apps/kit/accounts/departures.h). `user` closes the account in D1, and removes it in D6:
//
//  D2  post-storage hides its posts, and takes no further one.
//  D3  favorite, direct-message and ads forget it.
//  D4  compose-post removes what is left of its posts elsewhere.
//  D5  social-graph, block-user and home-timeline forget it. Until D4 has ended, the queue of the home timelines looks for
//      its followers.
#include "apps/social/common/accounts.h"

#include <chrono>
#include <vector>

#include "apps/kit/forward.h"
#include "apps/social/data.h"
#include "curtail/rpc/when_all.h"

namespace curtail::social {
namespace {

constexpr uint32_t kPostsAtOnce = 16;
// The time that so many posts take, on a machine that is busy.
constexpr Nanos kTimeOfPosts = std::chrono::milliseconds(200);

}  // namespace

Accounts::Accounts(Env& env)
    : env_(env), departures_(env, env.Stub<User>("user"), [this](Context& ctx, const UserId& user) {
        return Forget(ctx, user);
      }) {}

Coroutine Accounts::Forget(Context& ctx, const UserId& user) const {
  if (absl::Status hidden = co_await HidePosts(ctx, user); !hidden.ok()) co_return hidden;  // D2
  // All are waited for, so that each comes as far as it can.
  const auto forgotten = co_await WhenAll(ctx, Ask(favorite_, Favorite::kForgetUser, user),
                                          Ask(messaging_, DirectMessaging::kForgetUser, user),
                                          Ask(ads_, Ads::kForgetUser, user));  // D3
  absl::Status status = apps::FirstErrorOf(forgotten);
  if (status.ok()) status = co_await FinishPosts(ctx, user.user());  // D4
  if (!status.ok()) co_return status;
  const auto last = co_await WhenAll(ctx, Ask(graph_, SocialGraph::kForgetUser, user),
                                     Ask(block_user_, BlockUser::kForgetUser, user),
                                     Ask(home_, HomeTimeline::kForgetUser, user));  // D5
  co_return apps::FirstErrorOf(last);
}

Coroutine Accounts::HidePosts(Context& ctx, const UserId& author) const {
  while (true) {
    auto [hidden] = co_await WhenAll(ctx, Ask(storage_, PostStorage::kRetire, author));
    if (!hidden.ok() || hidden->count() == 0) co_return hidden.status();
  }
}

Coroutine Accounts::FinishPosts(Context& ctx, uint64_t author) const {
  PostsOfAuthor page;
  page.set_author(author);
  page.set_limit(kPostsAtOnce);
  while (true) {
    auto [left] = co_await WhenAll(ctx, Ask(storage_, PostStorage::kListDeleted, page));
    if (!left.ok() || left->posts().empty()) co_return left.status();
    const std::vector<Post> posts(left->posts().begin(), left->posts().end());
    const std::vector<Channel*> channels(posts.size(), compose_.channel());
    const auto finished = co_await fan_out(ctx, channels, ComposePost::kFinish, posts);
    for (const auto& one : finished) {
      if (!one.ok()) co_return one.status();
    }
    if (ctx.deadline().Remaining() < kTimeOfPosts) {
      co_return absl::DeadlineExceededError("the time is over before all posts are deleted");
    }
  }
}

}  // namespace curtail::social
