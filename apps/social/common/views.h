// SPDX-License-Identifier: Apache-2.0
//
// views.h - posts and people as one user sees them, for services that clients call.
#pragma once

#include <cstdint>

#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "users.curtail.h"

namespace curtail::social {

// A Views asks read-post, user and block-user. Immutable; thread-safe. `viewer` is 0 for a caller without a session.
class Views {
 public:
  explicit Views(Env& env) : env_(env) {}

  // A post that the viewer may see. NOT_FOUND for any other.
  Coroutine See(Context& ctx, uint64_t viewer, uint64_t id, Post* post) const;
  // Those of the posts that the viewer may see.
  Coroutine Show(Context& ctx, uint64_t viewer, const Ids& ids, Posts* posts) const;
  // Those of the users that the viewer may see.
  Coroutine Introduce(Context& ctx, uint64_t viewer, const Ids& ids, People* people) const;
  Coroutine LeaveOutHidden(Context& ctx, uint64_t viewer,
                           google::protobuf::RepeatedPtrField<Person>* people) const;

 private:
  Env& env_;
  const ReadPost::Stub read_post_ = env_.Stub<ReadPost>("read-post");
  const User::Stub user_ = env_.Stub<User>("user");
  const BlockUser::Stub block_user_ = env_.Stub<BlockUser>("block-user");
};

}  // namespace curtail::social
