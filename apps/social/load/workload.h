// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of `curtail load social`: DeathStarBench's mix of 60 % home timelines, 30 % user timelines and 10 %
// posts, by users of whom some are busier than others.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/kit/accounts/user_requests.h"
#include "apps/social/load/people.h"
#include "curtail/load/message/workload.h"

namespace curtail::social {

// Errors: INVALID_ARGUMENT. REQUIRES: `users` is not empty.
absl::StatusOr<std::unique_ptr<Workload>> MakeSocialWorkload(std::vector<apps::LoadUser> users,
                                                             const apps::UserWorkloadOptions& options);

apps::AppRequests Requests();

}  // namespace curtail::social
