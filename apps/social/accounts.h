// SPDX-License-Identifier: Apache-2.0
//
// accounts.h - the end of a user's account, for the service that clients call.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "apps/kit/jobs/finisher.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "messages.curtail.h"
#include "models.curtail.h"
#include "reactions.curtail.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

// An Accounts asks all services that keep something of users. A deletion that failed half way goes on behind the callers'
// backs. Thread-safe.
class Accounts {
 public:
  explicit Accounts(Env& env);

  // Deletes the user of these credentials with all that it has made. Errors: those of User::Login(), and
  // of the services. The message of the latter says that parts are left, which go once all services answer.
  Coroutine Delete(Context& ctx, const Credentials& credentials) const;

 private:
  // The steps after User::Close().
  Coroutine DeleteClosed(Context& ctx, const UserId& user) const;
  Coroutine HidePosts(Context& ctx, const UserId& author) const;
  Coroutine FinishPosts(Context& ctx, uint64_t author) const;
  // A round of the finisher.
  absl::Status DeleteLeft(absl::FunctionRef<bool()> stopping) const;

  Env& env_;
  const User::Stub user_ = env_.Stub<User>("user");
  const SocialGraph::Stub graph_ = env_.Stub<SocialGraph>("social-graph");
  const BlockUser::Stub block_user_ = env_.Stub<BlockUser>("block-user");
  const ComposePost::Stub compose_ = env_.Stub<ComposePost>("compose-post");
  const PostStorage::Stub storage_ = env_.Stub<PostStorage>("post-storage");
  const Favorite::Stub favorite_ = env_.Stub<Favorite>("favorite");
  const DirectMessaging::Stub messaging_ = env_.Stub<DirectMessaging>("direct-message");
  const Ads::Stub ads_ = env_.Stub<Ads>("ads");
  const HomeTimeline::Stub home_ = env_.Stub<HomeTimeline>("home-timeline");
  apps::Finisher finisher_;
};

}  // namespace curtail::social
