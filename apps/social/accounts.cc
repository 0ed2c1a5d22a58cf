// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Each step may be repeated, so a deletion that ended half way goes on when it is called again, and by itself:
//
//  D1  `user` closes the account, in one write, and lists it until D6. No other method finds it from now on, but these
//      credentials still do.
//  D2  post-storage hides its posts, and takes no further one.
//  D3  favorite, direct-message and ads forget it.
//  D4  compose-post removes what is left of its posts elsewhere.
//  D5  social-graph, block-user and home-timeline forget it. Until D4 has ended, the queue of the home timelines looks for
//      its followers.
//  D6  `user` removes the account. Now the name is free.
//
// A service that forgets a user refuses what the user did before D1 and comes late (gone.h).
#include "apps/social/accounts.h"

#include <chrono>
#include <vector>

#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/accounts/gone.h"
#include "apps/kit/forward.h"
#include "apps/kit/run_here.h"
#include "apps/social/data.h"
#include "curtail/rpc/when_all.h"

namespace curtail::social {
namespace {

constexpr uint32_t kPostsAtOnce = 16, kAccountsAtOnce = 100;
// Of an attempt of the finisher.
constexpr Nanos kAttemptTime = std::chrono::seconds(5);
// The time that so many posts take, on a machine that is busy.
constexpr Nanos kTimeOfPosts = std::chrono::milliseconds(200);

}  // namespace

Accounts::Accounts(Env& env)
    : env_(env), finisher_([this](absl::FunctionRef<bool()> stopping) { return DeleteLeft(stopping); }) {
  finisher_.WorkWhileServing(env);
}

Coroutine Accounts::Delete(Context& ctx, const Credentials& credentials) const {
  auto [closed] = co_await WhenAll(ctx, Ask(user_, User::kClose, credentials));  // D1
  if (!closed.ok()) co_return closed.status();
  absl::Status deleted = co_await DeleteClosed(ctx, *closed);
  if (deleted.ok()) co_return deleted;
  co_return apps::ForClients(
      absl::Status(deleted.code(),
                   "the account is closed, but parts of it are left; they go as soon as all services"
                   " answer, or call again with the same name and password"));
}

Coroutine Accounts::DeleteClosed(Context& ctx, const UserId& user) const {
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
  if (status = apps::FirstErrorOf(last); !status.ok()) co_return status;
  auto [removed] = co_await WhenAll(ctx, Ask(user_, User::kRemove, user));  // D6
  co_return removed.status();
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

absl::Status Accounts::DeleteLeft(absl::FunctionRef<bool()> stopping) const {
  absl::Status status;
  IdPage page;
  page.set_limit(kAccountsAtOnce);
  Ids closed;
  do {
    closed.Clear();
    Context ctx(kAttemptTime);
    if (absl::Status listed = user_.ListClosed(ctx, page, &closed); !listed.ok()) return listed;
    for (const uint64_t id : closed.ids()) {
      if (stopping()) return status;
      Context one(kAttemptTime);
      UserId user;
      user.set_user(id);
      status.Update(apps::RunHere(DeleteClosed(one, user)));
      page.set_after(id);
    }
  } while (!closed.ids().empty());
  return status;
}

}  // namespace curtail::social
