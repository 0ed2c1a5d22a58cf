// SPDX-License-Identifier: Apache-2.0
//
// wrk2.h - the endpoints of DeathStarBench's load script (media_wrk2.proto). They authenticate nobody.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "apps/kit/accounts/sessions.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/service.h"
#include "media.pb.h"

namespace curtail::media {

// Writes a review of a user, as Media.Compose().
using WriteReview =
    std::function<Coroutine(Context& ctx, uint64_t user, const ReviewRequest& request, Review* reply)>;

// REQUIRES: the front end calls user, movie-info, cast-info, plot and search. `sessions` and what `compose` calls outlive the service.
std::unique_ptr<Service> MakeWrk2(Env& env, const apps::Sessions& sessions, WriteReview compose);

}  // namespace curtail::media
