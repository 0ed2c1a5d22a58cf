// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of `curtail load social`: DeathStarBench's mix of 60 % home timelines, 30 % user timelines and 10 %
// posts, by users of whom some are busier than others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/kit/fill.h"
#include "apps/kit/requests.h"
#include "apps/social/people.h"
#include "curtail/load/message/workload.h"

namespace curtail::social {

struct SocialWorkloadOptions {
  std::string mix = "mixed";      // or "home", "user", "compose" alone
  std::string users = "uniform";  // who sends: also "zipf:S" or "skew:S", see curtail/load/drive/choice.h
  uint64_t seed = 1;
};

// Errors: INVALID_ARGUMENT. REQUIRES: `users` is not empty.
absl::StatusOr<std::unique_ptr<Workload>> MakeSocialWorkload(std::vector<apps::LoadUser> users,
                                                             const SocialWorkloadOptions& options);

apps::AppRequests Requests();

}  // namespace curtail::social
