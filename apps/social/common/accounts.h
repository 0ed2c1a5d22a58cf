// SPDX-License-Identifier: Apache-2.0
//
// accounts.h - the end of a user's account, for the service that clients call.
#pragma once

#include <cstdint>

#include "apps/kit/accounts/departures.h"
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

// An Accounts asks all services that keep something of users. Thread-safe.
class Accounts {
 public:
  explicit Accounts(Env& env);

  // Deletes the user of these credentials with all that it has made. Errors: as apps::Departures::Delete().
  Coroutine Delete(Context& ctx, const Credentials& credentials) const {
    return departures_.Delete(ctx, credentials);
  }

 private:
  // Steps D2 to D5.
  Coroutine Forget(Context& ctx, const UserId& user) const;
  Coroutine HidePosts(Context& ctx, const UserId& author) const;
  Coroutine FinishPosts(Context& ctx, uint64_t author) const;

  Env& env_;
  const SocialGraph::Stub graph_ = env_.Stub<SocialGraph>("social-graph");
  const BlockUser::Stub block_user_ = env_.Stub<BlockUser>("block-user");
  const ComposePost::Stub compose_ = env_.Stub<ComposePost>("compose-post");
  const PostStorage::Stub storage_ = env_.Stub<PostStorage>("post-storage");
  const Favorite::Stub favorite_ = env_.Stub<Favorite>("favorite");
  const DirectMessaging::Stub messaging_ = env_.Stub<DirectMessaging>("direct-message");
  const Ads::Stub ads_ = env_.Stub<Ads>("ads");
  const HomeTimeline::Stub home_ = env_.Stub<HomeTimeline>("home-timeline");
  const apps::Departures departures_;
};

}  // namespace curtail::social
