// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Each step may be repeated, so a deletion that ended half way goes on when it is called again:
//
//  D1  `user` closes the account. No other method finds it from now on, but these credentials still do.
//  D2  favorite, direct-message and ads forget it.
//  D3  Its posts are deleted, as by DeletePost(). post-storage takes no further one.
//  D4  social-graph, block-user and home-timeline forget it. Until D3 has ended, the queue of the home timelines looks for
//      its followers, and blocks hide its posts.
//  D5  `user` removes the account. Now the name is free.
//
// A service that forgets a user refuses what the user did before D1 and comes late (gone.h).
#include "apps/social/accounts.h"

#include <chrono>
#include <tuple>
#include <vector>

#include "apps/social/gone.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/when_all.h"

namespace curtail::social {
namespace {

constexpr uint32_t kPostsAtOnce = 16;
// The time that so many posts take, on a machine that is busy.
constexpr Nanos kTimeOfPosts = std::chrono::milliseconds(200);

// The first error of calls that have all ended.
template <class... Outcomes>
absl::Status FirstErrorOf(const std::tuple<Outcomes...>& outcomes) {
  absl::Status status;
  std::apply([&](const auto&... one) { (status.Update(one.status()), ...); }, outcomes);
  return status;
}

}  // namespace

Accounts::Accounts(Env& env)
    : user_(env.Stub<User>("user")),
      graph_(env.Stub<SocialGraph>("social-graph")),
      block_user_(env.Stub<BlockUser>("block-user")),
      compose_(env.Stub<ComposePost>("compose-post")),
      storage_(env.Stub<PostStorage>("post-storage")),
      favorite_(env.Stub<Favorite>("favorite")),
      messaging_(env.Stub<DirectMessaging>("direct-message")),
      ads_(env.Stub<Ads>("ads")),
      home_(env.Stub<HomeTimeline>("home-timeline")) {}

Coroutine Accounts::Delete(Context& ctx, const Credentials& credentials) const {
  auto [closed] = co_await WhenAll(ctx, Ask(user_, User::kClose, credentials));  // D1
  if (!closed.ok()) co_return closed.status();
  absl::Status deleted = co_await DeleteClosed(ctx, *closed);
  if (deleted.ok()) co_return deleted;
  co_return absl::Status(deleted.code(),
                         Join("the account is closed, but parts of it are left; call again with"
                              " the same name and password to go on: ",
                              Message(deleted)));
}

Coroutine Accounts::DeleteClosed(Context& ctx, const UserId& user) const {
  // All are waited for, so that each comes as far as it can.
  const auto forgotten = co_await WhenAll(ctx, Ask(favorite_, Favorite::kForgetUser, user),
                                          Ask(messaging_, DirectMessaging::kForgetUser, user),
                                          Ask(ads_, Ads::kForgetUser, user));  // D2
  absl::Status status = FirstErrorOf(forgotten);
  if (status.ok()) status = co_await DeletePosts(ctx, user.user());  // D3
  if (!status.ok()) co_return status;
  const auto last = co_await WhenAll(ctx, Ask(graph_, SocialGraph::kForgetUser, user),
                                     Ask(block_user_, BlockUser::kForgetUser, user),
                                     Ask(home_, HomeTimeline::kForgetUser, user));  // D4
  if (status = FirstErrorOf(last); !status.ok()) co_return status;
  auto [removed] = co_await WhenAll(ctx, Ask(user_, User::kRemove, user));  // D5
  co_return removed.status();
}

Coroutine Accounts::DeletePosts(Context& ctx, uint64_t author) const {
  PostsOfAuthor page;
  page.set_author(author);
  page.set_limit(kPostsAtOnce);
  while (true) {
    auto [ids] = co_await WhenAll(ctx, Ask(storage_, PostStorage::kRetire, page));
    if (!ids.ok() || ids->ids().empty()) co_return ids.status();
    std::vector<PostOfAuthor> posts;
    for (const uint64_t id : ids->ids()) {
      posts.emplace_back().set_post(id);
      posts.back().set_author(author);
      posts.back().set_retired(true);
    }
    const std::vector<Channel*> channels(posts.size(), compose_.channel());
    const auto deleted = co_await fan_out(ctx, channels, ComposePost::kDelete, posts);
    for (size_t i = 0; i < deleted.size(); ++i) {
      absl::Status status = deleted[i].status();
      // Another call deleted it, or a cache says so without reason.
      if (absl::IsNotFound(status)) {
        auto [stored] = co_await WhenAll(ctx, Ask(storage_, PostStorage::kDelete, posts[i]));
        status = stored.status();
      }
      if (!status.ok()) co_return status;
    }
    page.set_after(*ids->ids().rbegin());
    if (ctx.deadline().Remaining() < kTimeOfPosts) {
      co_return absl::DeadlineExceededError("the time is over before all posts are deleted");
    }
  }
}

Co<absl::StatusOr<uint64_t>> Accounts::Present(Context& ctx, absl::StatusOr<uint64_t> caller) const {
  if (!caller.ok()) co_return caller;
  Ids ids;
  ids.add_ids(*caller);
  auto [people] = co_await WhenAll(ctx, Ask(user_, User::kById, ids));
  if (!people.ok()) co_return people.status();
  if (people->people().empty()) co_return GoneError();
  co_return caller;
}

}  // namespace curtail::social
