// SPDX-License-Identifier: Apache-2.0
//
// user_requests.h - requests of generated users, whose sessions a fill command has left (fill.h): which kinds, and who sends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/kit/load/fill.h"
#include "apps/kit/load/mixed_workload.h"
#include "apps/kit/load/requests.h"
#include "curtail/load/message/choice.h"
#include "curtail/load/message/workload.h"

namespace curtail::apps {

struct UserWorkloadOptions {
  std::string mix = "mixed";
  std::string users = "uniform";  // who sends: also "zipf:S" or "skew:S", see curtail/load/message/choice.h
  uint64_t seed = 1;
  RequestOptions given;     // for the application's own options
  std::string folder = {};  // where the fill command has left the sessions, and what else it leaves
};

// Returns who of `count` users sends which request. Errors: INVALID_ARGUMENT: the mix is none of `mixes`, or `users` is wrong.
absl::StatusOr<ItemChoice> SendersOf(const UserWorkloadOptions& options,
                                     const std::vector<std::string_view>& mixes, size_t count);

// The requests of an application with the options --mix and --senders. Wrong options are refused before there are users.
AppRequests UserRequests(std::string service, std::string application, std::vector<std::string_view> mixes,
                         std::function<absl::StatusOr<std::unique_ptr<Workload>>(
                             std::vector<LoadUser> users, const UserWorkloadOptions& options)>
                             make);

// The same for mixes of kinds that `kinds` makes of the users.
AppRequests MixedRequests(std::string service, std::string application, std::span<const NamedMix> mixes,
                          std::function<absl::StatusOr<Kinds>(const std::vector<LoadUser>& users,
                                                              const UserWorkloadOptions& options)>
                              kinds);

}  // namespace curtail::apps
