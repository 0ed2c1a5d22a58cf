// SPDX-License-Identifier: Apache-2.0
//
// wrk2.h - the endpoints of DeathStarBench's load scripts (wrk2.proto). They authenticate nobody.
#pragma once

#include <memory>

#include "apps/kit/accounts/sessions.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/service.h"

namespace curtail::social {

// REQUIRES: HostedService::calls names user, social-graph, compose-post, home-timeline and user-timeline.
// `sessions` outlives the service.
std::unique_ptr<Service> MakeWrk2(Env& env, const apps::Sessions& sessions);

}  // namespace curtail::social
